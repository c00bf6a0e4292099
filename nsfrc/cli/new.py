"""`nsfrc new`: a commented program to start from, for a detector or for detections of your own."""

from __future__ import annotations

from pathlib import Path

import click

from nsfrc.errors import NsfrcError

TEMPLATE = """\
% {name}: what is asked of a picture, over the objects that {source}.
%
%   nsfrc check {file}{option}
%   nsfrc infer --images DIR --program {file}{option} --report report.html

:- include('boxes.pl').                 % left_of, above, inside, overlaps, near, larger, largest … over boxes

:- type(image, [img]).
:- type(object, slots(auto)).           % as many objects as the fullest picture has
:- type(class, from_perception).        {classes}
:- neural(in(object, image)).
:- neural(class(object, class)).
{perception}:- presence(crisp(0.25)).               % from this confidence on an object is there; soft: as far as sure

:- target({name}(img)).                 % the question; there may be several

% {spoken}
{name}(X) :- {rule}.

% More to start from. Two variables of one clause are always different objects.
%   no(X)    :- \\+ (in(O, X), class(O, {one})).                                   % there is no {one}
%   many(X)  :- aggregate_all(count, (in(O, X), class(O, {one})), N), N >= 3.       % at least three
%   large(X) :- in(O, X), class(O, {one}), largest(O, X).                           % the largest object is one
%   top(X)   :- in(O, X), class(O, {one}), y2(O) < 0.5.                             % one in the upper half
%   sure(X)  :- in(O, X), class(O, {one}), confidence(O) > 0.8.                     % one that was seen clearly
"""


@click.command(
    "new",
    epilog="""\b
Examples:
  nsfrc new crossing --perception best.onnx    writes crossing.pl, with the classes of the detector
  nsfrc new crossing --detections found.csv    the same for detections that you have already
  nsfrc new crossing                           to be filled in
""",
)
@click.argument("name")
@click.option("--perception", type=click.Path(path_type=Path), metavar="FILE",
              help="The model file of a detector, .onnx.")
@click.option("--detections", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="Detections, as nsfrc infer takes them.")
def command(name: str, perception: Path | None, detections: Path | None) -> None:
    """Write NAME.pl, a commented program to start from."""
    from nsfrc.files import write_whole
    from nsfrc.models.names import atom

    path = Path(name if name.endswith(".pl") else f"{name}.pl")
    called = atom(path.stem)
    if not called or not called[0].isalpha():
        raise NsfrcError(f"{name} is no name for a program: use a word such as crossing")
    if path.exists():
        raise NsfrcError(f"there is a file {path} already: choose another name")
    if perception is not None and detections is not None:
        raise NsfrcError("a program has a perception or is given detections: leave out one of the two")
    write_whole(path, _text(called, path, perception, detections).encode())
    click.echo(f"written to {path}: edit it, then nsfrc check {path}{_option(perception, detections)}")


def _text(name: str, path: Path, perception: Path | None, detections: Path | None) -> str:
    from nsfrc.compiler.ir import quoted

    classes = _classes(perception, detections)
    one, other = (quoted(classes[min(place, len(classes) - 1)]) for place in (0, 1))
    shown = ", ".join(map(quoted, classes[:6])) + (f" … ({len(classes)} in all)" if len(classes) > 6 else "")
    source = f"{perception or 'your detector'} finds in it" if detections is None else f"{detections} lists"
    option = _option(perception, detections)
    rule = f"in(A, X), class(A, {one}), in(B, X), class(B, {other}), near(A, B)"
    return TEMPLATE.format(
        name=name, file=path, source=source, option=option, one=one, rule=rule,
        classes=f"% {shown}" if perception or detections else "% the classes of the detector, such as person and car",
        perception=f":- perception({_quoted(perception)}).\n" if perception is not None else "",
        spoken=f"Some {one} is near {'another one' if one == other else f'some {other}'}.",
    )


def _option(perception: Path | None, detections: Path | None) -> str:
    """What commands need besides the program."""
    return f" --detections {detections}" if detections is not None else "" if perception else " --perception FILE"


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _classes(perception: Path | None, detections: Path | None) -> tuple[str, ...]:
    """The classes as constants; a model file is only looked at, not run."""
    from nsfrc.models.outside import Outside

    if detections is not None:
        from nsfrc.models.detections import detections as as_detections

        return as_detections(detections).names.atoms
    if perception is None:
        return ("person", "car")
    if not str(perception).lower().endswith(".onnx"):
        raise NsfrcError(f"{perception} is not an ONNX file, whose classes could be read: export it with `yolo export "
                         f"model={perception} format=onnx`")
    return Outside(str(perception)).class_names(None, (), Path()).atoms
