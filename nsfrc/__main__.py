"""`python -m nsfrc` is the command `nsfrc`, for launchers that take a module, such as torchrun."""

from nsfrc.cli import main

if __name__ == "__main__":
    main()
