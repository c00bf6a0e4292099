"""The rows of a PNG, undone and averaged over blocks of pixels, in one pass; in LLVM's own language.

A row of a PNG is what is left of its bytes after a guess from their neighbours: a to the left, b above, c above a. What
is above and to the left of the picture is 0. See `png`, which calls it.
"""

from __future__ import annotations

import struct
from functools import cache

from nsfrc.engines.cpu import native

NAME = "png_rows"
# Addresses of the rows as inflated, of two rows to work in, of sums (uint16), and of what comes out; then bytes and
# number of rows, bytes of a pixel (3 or 4), columns and rows of a block, and 2²⁴ divided by these two.
RECORD = struct.Struct("10q")
MARGIN = 8  # zeros before each row to work in: what is to the left of the picture
FINE = 0  # else a row has a filter that there is not, or a pixel is transparent

_FILTER = """
define internal void @png_{name}(ptr noalias %now, ptr noalias %above, ptr noalias %given, i64 %count, i64 %step) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %left = sub i64 %i, %step
  %given_at = getelementptr i8, ptr %given, i64 %i
  %a_at = getelementptr i8, ptr %now, i64 %left
  %b_at = getelementptr i8, ptr %above, i64 %i
  %c_at = getelementptr i8, ptr %above, i64 %left
  %now_at = getelementptr i8, ptr %now, i64 %i
  %x = load i8, ptr %given_at
{guess}
  %value = add i8 %x, %guess
  store i8 %value, ptr %now_at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
_GUESSES = {
    "none": "  %guess = add i8 0, 0",
    "sub": "  %guess = load i8, ptr %a_at",
    "up": "  %guess = load i8, ptr %b_at",
    "average": """  %a8 = load i8, ptr %a_at
  %b8 = load i8, ptr %b_at
  %a = zext i8 %a8 to i32
  %b = zext i8 %b8 to i32
  %sum = add i32 %a, %b
  %half = lshr i32 %sum, 1
  %guess = trunc i32 %half to i8""",
    # The one of a, b, c that is nearest to a + b - c, of equally near ones the first.
    "paeth": """  %a8 = load i8, ptr %a_at
  %b8 = load i8, ptr %b_at
  %c8 = load i8, ptr %c_at
  %a = zext i8 %a8 to i32
  %b = zext i8 %b8 to i32
  %c = zext i8 %c8 to i32
  %from_a = sub i32 %b, %c
  %from_b = sub i32 %a, %c
  %from_c = add i32 %from_a, %from_b
  %to_a = call i32 @llvm.abs.i32(i32 %from_a, i1 true)
  %to_b = call i32 @llvm.abs.i32(i32 %from_b, i1 true)
  %to_c = call i32 @llvm.abs.i32(i32 %from_c, i1 true)
  %b_wins = icmp ule i32 %to_b, %to_c
  %b_or_c = select i1 %b_wins, i8 %b8, i8 %c8
  %a_before_b = icmp ule i32 %to_a, %to_b
  %a_before_c = icmp ule i32 %to_a, %to_c
  %a_wins = and i1 %a_before_b, %a_before_c
  %guess = select i1 %a_wins, i8 %a8, i8 %b_or_c""",
}

_ADD = """
define internal void @png_add(ptr noalias %sums, ptr noalias %now, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %now_at = getelementptr i8, ptr %now, i64 %i
  %sum_at = getelementptr i16, ptr %sums, i64 %i
  %byte = load i8, ptr %now_at
  %more16 = zext i8 %byte to i16
  %before = load i16, ptr %sum_at
  %after = add i16 %before, %more16
  store i16 %after, ptr %sum_at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""

# A row of blocks: sums of columns → the mean of each block, rounded as Pillow rounds it, 3 bytes each; the sums are 0
# again. Says whether all of a fourth channel is 255.
_BLOCKS = """
define internal i1 @png_blocks(ptr noalias %out, ptr noalias %sums, i64 %count, i64 %step, i64 %across, i32 %area,
                               i32 %multiplier) {
entry:
  %half = lshr i32 %area, 1
  %opaque = mul i32 %area, 255
  %width = mul i64 %step, %across
  br label %block
block:
  %first = phi i64 [ 0, %entry ], [ %first_next, %block_end ]
  %place = phi i64 [ 0, %entry ], [ %place_next, %block_end ]
  %fine = phi i1 [ true, %entry ], [ %fine_next, %block_end ]
  %past = add i64 %first, %width
  br label %channel
channel:
  %c = phi i64 [ 0, %block ], [ %c_next, %channel_end ]
  %fine_so_far = phi i1 [ %fine, %block ], [ %fine_next, %channel_end ]
  %from = add i64 %first, %c
  br label %column
column:
  %i = phi i64 [ %from, %channel ], [ %i_next, %column ]
  %sum = phi i32 [ 0, %channel ], [ %sum_next, %column ]
  %sum_at = getelementptr i16, ptr %sums, i64 %i
  %part = load i16, ptr %sum_at
  store i16 0, ptr %sum_at
  %part32 = zext i16 %part to i32
  %sum_next = add i32 %sum, %part32
  %i_next = add i64 %i, %step
  %columns = icmp slt i64 %i_next, %past
  br i1 %columns, label %column, label %sum_done
sum_done:
  %is_alpha = icmp eq i64 %c, 3
  br i1 %is_alpha, label %alpha, label %colour
alpha:
  %is_opaque = icmp eq i32 %sum_next, %opaque
  %still = and i1 %fine_so_far, %is_opaque
  br label %channel_end
colour:
  %rounded = add i32 %sum_next, %half
  %scaled = mul i32 %rounded, %multiplier
  %mean = lshr i32 %scaled, 24
  %byte = trunc i32 %mean to i8
  %byte_place = add i64 %place, %c
  %byte_at = getelementptr i8, ptr %out, i64 %byte_place
  store i8 %byte, ptr %byte_at
  br label %channel_end
channel_end:
  %fine_next = phi i1 [ %still, %alpha ], [ %fine_so_far, %colour ]
  %c_next = add i64 %c, 1
  %channels = icmp slt i64 %c_next, %step
  br i1 %channels, label %channel, label %block_end
block_end:
  %first_next = add i64 %first, %width
  %place_next = add i64 %place, 3
  %blocks = icmp slt i64 %first_next, %count
  br i1 %blocks, label %block, label %end
end:
  ret i1 %fine_next
}
"""

_FIELDS = ("given", "work", "sums", "out", "count", "rows", "step", "across", "down", "multiplier")
_READ = "\n".join(f"  %{name}_at = getelementptr i64, ptr %record, i64 {place}\n  %{name} = load i64, ptr %{name}_at"
                  for place, name in enumerate(_FIELDS))
_UNDO = "\n".join(
    f"{name}:\n  call void @png_{name}(ptr %now, ptr %above, ptr %bytes, i64 %count, i64 %step)\n  br label %undone"
    for name in _GUESSES)
_CASES = " ".join(f"i8 {number}, label %{name}" for number, name in enumerate(_GUESSES))
_ROWS = f"""
define i64 @{native.PREFIX}{NAME}(ptr %record) {{
entry:
{_READ}
  %given_ptr = inttoptr i64 %given to ptr
  %work_ptr = inttoptr i64 %work to ptr
  %sums_ptr = inttoptr i64 %sums to ptr
  %out_ptr = inttoptr i64 %out to ptr
  %pace = add i64 %count, 1
  %room = add i64 %count, {MARGIN}
  %width = mul i64 %step, %across
  %blocks = sdiv i64 %count, %width
  %out_pace = mul i64 %blocks, 3
  %area64 = mul i64 %across, %down
  %area = trunc i64 %area64 to i32
  %multiplier32 = trunc i64 %multiplier to i32
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r_next, %row_end ]
  %in_block = phi i64 [ 0, %entry ], [ %in_block_next, %row_end ]
  %out_row = phi ptr [ %out_ptr, %entry ], [ %out_next, %row_end ]
  %offset = mul i64 %r, %pace
  %filter_at = getelementptr i8, ptr %given_ptr, i64 %offset
  %bytes = getelementptr i8, ptr %filter_at, i64 1
  %odd = and i64 %r, 1
  %even = xor i64 %odd, 1
  %now_offset = mul i64 %odd, %room
  %above_offset = mul i64 %even, %room
  %now_room = getelementptr i8, ptr %work_ptr, i64 %now_offset
  %above_room = getelementptr i8, ptr %work_ptr, i64 %above_offset
  %now = getelementptr i8, ptr %now_room, i64 {MARGIN}
  %above = getelementptr i8, ptr %above_room, i64 {MARGIN}
  %filter = load i8, ptr %filter_at
  switch i8 %filter, label %wrong [ {_CASES} ]
{_UNDO}
undone:
  call void @png_add(ptr %sums_ptr, ptr %now, i64 %count)
  %added = add i64 %in_block, 1
  %whole = icmp eq i64 %added, %down
  br i1 %whole, label %block, label %row_end
block:
  %fine = call i1 @png_blocks(ptr %out_row, ptr %sums_ptr, i64 %count, i64 %step, i64 %across, i32 %area,
                              i32 %multiplier32)
  %out_after = getelementptr i8, ptr %out_row, i64 %out_pace
  br i1 %fine, label %row_end, label %wrong
row_end:
  %in_block_next = phi i64 [ %added, %undone ], [ 0, %block ]
  %out_next = phi ptr [ %out_row, %undone ], [ %out_after, %block ]
  %r_next = add i64 %r, 1
  %more = icmp slt i64 %r_next, %rows
  br i1 %more, label %row, label %end
end:
  ret i64 {FINE}
wrong:
  ret i64 1
}}
"""

native.WRITTEN[NAME] = "declare i32 @llvm.abs.i32(i32, i1)\n" + "".join(
    _FILTER.format(name=name, guess=guess) for name, guess in _GUESSES.items()) + _ADD + _BLOCKS + _ROWS
native.FAR.add(NAME)


@cache
def kernel() -> native.Kernel | None:
    """What undoes rows, of which `RECORD` tells; None where there is none."""
    if not native.compiled():
        return None
    try:
        return native.kernel(NAME)
    except Exception:  # an LLVM that does not know all of this
        return None
