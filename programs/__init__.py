"""The programs that ship with nsfrc, as Prolog files, and nsfr.pl, with which SWI-Prolog loads them."""
