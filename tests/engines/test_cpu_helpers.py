"""The CPU engine's threads, and where its compiled kernels are kept."""

from __future__ import annotations

import lzma
import os
import re
import signal
import sys
import threading

import pytest

from nsfrc.engines.cpu import cache, lowering, native, threads
from nsfrc.engines.cpu.threads import in_threads
from nsfrc.errors import NsfrcError
from tests.amount import THOROUGH


def test_work_is_done_side_by_side():
    """Each waits for the others, so that none could be done before another has begun."""
    together = threading.Barrier(3, timeout=30)
    places = []

    def work():
        together.wait()
        places.append(threading.current_thread().name)

    in_threads([work] * 3)
    assert len(set(places)) == 3 and threading.current_thread().name in places


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_when_all_are_done(failing):
    done = []

    def work(number):
        if number == failing:
            raise ValueError(f"number {number}")
        done.append(number)

    with pytest.raises(ValueError, match=f"number {failing}"):
        in_threads([lambda number=number: work(number) for number in range(3)])
    assert sorted(done) == [number for number in range(3) if number != failing]
    in_threads([lambda: done.append("again"), lambda: done.append("again")])
    assert done.count("again") == 2


@pytest.fixture
def doubling(tmp_path, monkeypatch):
    """A kernel that says twice the number in its record, in place of `forward`."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    text = native._text
    monkeypatch.setattr(native, "_text", lambda name: text(name) if name == "parts" else SMALL)
    for one in (native.kernel, native.address):
        one.cache_clear()
    yield [number.to_bytes(8, sys.byteorder) for number in range(7)]
    for one in (native.kernel, native.address):
        one.cache_clear()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_parts_on_any_threads(doubling, monkeypatch, count):
    """More parts than there are processors too: then a thread has several."""
    expected = [2 * number for number in range(count)]
    assert threads.run_parts("small", doubling[:count]) == expected
    assert threads._queued("small", doubling[:count]) == expected
    monkeypatch.setattr(threads, "_openmp", lambda: None)
    assert threads.run_parts("small", doubling[:count]) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another OpenMP")
def test_torch_threads_are_used():
    assert threads._openmp() is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own(doubling):
    """OpenMP's are no more there, and waiting for them would never end."""
    assert threads.run_parts("small", doubling) == list(range(0, 14, 2))
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if threads.run_parts("small", doubling) == list(range(0, 14, 2)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_kernels_are_kept_where_one_may_write(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    name = cache.folder(b"a").name
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.folder(b"a") == tmp_path / name
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    beside, writable = cache.HERE / "__pycache__" / name, cache._writable
    monkeypatch.setattr(cache, "_writable", lambda folder: folder != beside and writable(folder))
    assert cache.folder(b"a") == tmp_path / "home" / "nsfrc" / name
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    last = cache.folder(b"a")
    assert last.name == name and last.parent.name == f"nsfrc-{os.getuid()}"


def test_the_folder_is_named_after_what_the_kernels_are(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    names = [cache.folder(content).name for content in (b"a = 1", b"a = 2", b"a = 1")]
    assert names[0] == names[2] != names[1]


def test_compiling_is_said_once_and_on_terminals_alone(monkeypatch, capsys):
    monkeypatch.setattr(cache, "_said", set())
    cache.tell("compiling")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for what in ("compiling", "compiling", "making anew"):
        cache.tell(what)
    assert capsys.readouterr().err.splitlines() == ["compiling", "making anew"]


@pytest.mark.parametrize("name", native.KERNELS)
def test_shipped_kernels_belong_to_the_sources(name):
    text = native._read(native.LOWERED / f"{name}.ll.xz")
    assert text is not None and native._belongs(text), "a kernel's source changed: make kernels"
    declared = {line.split("@")[1].split("(")[0] for line in text.splitlines() if line.startswith("declare")}
    assert {one for one in declared if not one.startswith(("llvm.", native.PREFIX))} <= set(native.LIBRARY)


def test_every_module_of_kernels_is_among_their_sources():
    """Else a change of it would go unseen."""
    modules = {path.stem: path.read_text() for path in native.HERE.glob("*.py")}
    assert {name for name, text in modules.items() if "@njit" in text} <= set(native.SOURCES)
    for name in native.SOURCES:
        used = re.findall(r"^from nsfrc\.engines\.cpu\.(\w+) import", modules[name], re.M)
        assert set(used) <= set(native.SOURCES), name


@pytest.mark.skipif(not THOROUGH, reason="makes all kernels anew: make thorough")
def test_shipped_kernels_are_what_the_sources_say(tmp_path):
    lowering.write(tmp_path)
    for name in native.KERNELS:
        assert native._read(tmp_path / f"{name}.ll.xz") == native._read(native.LOWERED / f"{name}.ll.xz"), name


SMALL = """; digest
declare i32 @nsfrc_float_mode(i32)
define i64 @nsfrc_small(i64 %address) {
  %mode = call i32 @nsfrc_float_mode(i32 0)
  %place = inttoptr i64 %address to ptr
  %number = load i64, ptr %place
  %double = mul i64 %number, 2
  ret i64 %double
}
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A kernel that takes no time to compile, and the file that its machine code is kept in."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native, "_text", lambda name: SMALL)
    compiled = []
    compile_text = native._compile
    monkeypatch.setattr(native, "_compile", lambda text: compiled.append(text) or compile_text(text))

    def run():
        native.kernel.cache_clear()
        native.address.cache_clear()
        return native.kernel("small")((21).to_bytes(8, sys.byteorder))

    yield run, compiled, tmp_path
    native.kernel.cache_clear()
    native.address.cache_clear()


def test_machine_code_is_compiled_once(small):
    run, compiled, _ = small
    assert run() == run() == 42 and len(compiled) == 1


@pytest.mark.parametrize(
    "damage", [lambda code: code[:-100], lambda code: code[:40] + b"x" + code[41:], lambda code: b""])
def test_damaged_machine_code_is_never_run(small, damage):
    run, compiled, folder = small
    assert run() == 42
    (path,) = folder.glob("*/small.o")
    path.write_bytes(damage(path.read_bytes()))
    assert run() == 42 and len(compiled) == 2


def test_kernels_run_where_nothing_can_be_kept(small, monkeypatch):
    run, compiled, _ = small

    def refuse(path, data):
        raise NsfrcError("cannot write")

    monkeypatch.setattr(native, "write_whole", refuse)
    assert run() == run() == 42 and len(compiled) == 2


def test_a_kernel_that_this_llvm_cannot_read_is_made_anew(small, monkeypatch):
    run, compiled, _ = small
    monkeypatch.setattr(native, "_text", lambda name: "of a later version")
    monkeypatch.setattr(native, "_lowered_anew", lambda name: SMALL)
    assert run() == run() == 42 and compiled == ["of a later version", SMALL]


def test_what_keeps_kernels_from_being_made_is_told(tmp_path):
    with pytest.raises(NsfrcError, match=r"could not be made from their sources in .*cpu: KeyError: 'nothing'"):
        lowering.write(tmp_path, "nothing")


def test_a_kernel_whose_source_changed_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native, "from_sources", lambda: "changed")
    made = []

    def write(place, name):
        made.append(name)
        (place / f"{name}.ll.xz").write_bytes(lzma.compress(b"; changed\nanew"))

    monkeypatch.setattr(lowering, "write", write)
    assert native._text("forward") == native._text("forward") == "; changed\nanew" and made == ["forward"]
    monkeypatch.setattr(lowering, "write", lambda place, name: None)
    with pytest.raises(NsfrcError, match="'backward' could not be made from its sources"):
        native._text("backward")
