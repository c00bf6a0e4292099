"""What OpenAPI says of the routes whose bodies are read by hand."""

from __future__ import annotations

from typing import Any

SUMMARY = "Answers a program's questions about pictures, detections or facts, with scores, objects and reasons."

_BOX = {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4,
        "description": "x1, y1, x2, y2: fractions of the picture, or pixels where width and height are given"}
_DETECTION = {
    "type": "object", "required": ["class", "box"],
    "properties": {"class": {"type": "string"}, "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                   "box": _BOX},
}
_FILE = {
    "type": "object", "required": ["file", "detections"],
    "properties": {"file": {"type": "string"}, "width": {"type": "integer"}, "height": {"type": "integer"},
                   "detections": {"type": "array", "items": _DETECTION}},
}
_WORLD = {"type": "object", "additionalProperties": {"type": "number"},
          "description": "neural atoms and their values from 0 to 1, and numbers; what is not named is 0"}
_ROW = {
    "type": "object", "required": ["file", "error"],
    "description": "A row as `nsfrc infer --json` writes it; of several questions it has answers, reasons and labels.",
    "properties": {
        "file": {"type": "string"}, "label": {"type": "null"},
        "score": {"type": ["number", "null"], "description": "of the only target"},
        "scores": {"type": ["object", "null"], "additionalProperties": {"type": "number"},
                   "description": "of each of several targets or classes"},
        "answer": {"type": ["string", "null"]}, "answers": {"type": ["object", "null"]},
        "error": {"type": ["string", "null"], "description": "why there is no answer"},
        "reason": {"type": ["string", "null"]}, "reasons": {"type": ["object", "null"]},
        "dimensions": {"type": ["array", "null"], "items": {"type": "string"}},
        "objects": {"type": ["array", "null"], "items": {"type": "array", "items": {"type": "number"}},
                    "description": "for each object the entries that dimensions names"},
        "left_out": {"type": "integer", "description": "objects beyond those that the program speaks of"},
    },
}
_ROWS = {"application/json": {"schema": {
    "type": "object", "required": ["rows"], "properties": {"rows": {"type": "array", "items": _ROW}}}}}
_ERROR = {"application/json": {"schema": {
    "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}}}
_AGAIN = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}


def _refusals(**statuses: str) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {}
    for name, text in statuses.items():
        number = int(name.removeprefix("s"))
        found[number] = {"description": text, "content": _ERROR} | ({"headers": _AGAIN} if number == 503 else {})
    return found


INFER: dict[str, Any] = {
    "responses": {
        200: {"description": "a row for each picture, file or world, in their order; one that failed has an error",
              "content": _ROWS},
        **_refusals(s400="the body is damaged", s401="the token is missing or wrong", s408="the body came too slowly",
                    s413="the body is too large, or has too much in it", s415="the content type is another",
                    s503="there is no room now", s504="it took too long"),
        422: {"description": "no row has an answer (rows), or the body cannot be understood (error)",
              "content": {"application/json": {"schema": {"oneOf": [
                  _ROWS["application/json"]["schema"], _ERROR["application/json"]["schema"]]}}}},
    },
    "openapi_extra": {"requestBody": {"required": True, "content": {
        "multipart/form-data": {"schema": {
            "type": "object", "description": "each part with a file name is a picture, whatever it is called",
            "properties": {"image": {"type": "array", "items": {"type": "string", "format": "binary"}}}}},
        "application/json": {
            "schema": {"oneOf": [
                {"type": "object", "required": ["detections"], "additionalProperties": False,
                 "properties": {"detections": {"type": "array", "items": _FILE}}},
                {"type": "object", "required": ["facts"], "additionalProperties": False,
                 "properties": {"facts": {"type": "array", "items": _WORLD}}}]},
            "examples": {
                "detections": {"value": {"detections": [{"file": "a.png", "detections": [
                    {"class": "person", "confidence": 0.9, "box": [0.1, 0.2, 0.4, 0.8]}]}]}},
                "facts": {"value": {"facts": [{"in(obj1,img)": 1.0, "color(obj1,red)": 0.9}]}},
            },
        },
    }}},
}
PROGRAM: dict[str, Any] = {"responses": _refusals(s401="the token is missing or wrong")}
