"""A plan as tables for the kernels, and what they are compiled for."""

from __future__ import annotations

import numpy as np
import pytest

from nsfrc.engines.gpu.tables import bands, layout, pack
from nsfrc.program import from_compilation
from tests.examples import SHIPPED, shipped


def table(tables, name, size):
    start = getattr(tables.at, name)
    return tables.indices[start : start + size]


def columns(tables, name, size, wide):
    """The columns of a table that has so many."""
    return table(tables, name, wide * size).reshape(size, wide).T


@pytest.fixture(scope="module", params=SHIPPED)
def plan(request):
    return from_compilation(shipped(request.param)).plan


@pytest.mark.parametrize("tall", [32, 128, 256])
@pytest.mark.parametrize("counts", [[], [0], [3] * 40, [5040, 360, 120, 120, 90, 90, 90, 1, 1, 1], [600] + [7] * 300])
def test_bands_cover_every_segment_once(counts, tall):
    found = bands(np.array(counts, dtype=np.int64), tall)
    assert [i for band in found for i in range(band.first, band.last)] == list(range(len(counts)))
    for band in found:
        assert tall % band.width == 0 and band.width <= tall


@pytest.mark.parametrize("counts, entries", [
    ([0], [0]), ([5040] + [6] * 32, [5120, 8]), ([3] * 40, [4]), ([2] * 40, [2]), ([14] * 9 + [9] * 8, [0]),
    ([14] * 8 + [9] * 8, [0]), ([12] * 20, [12]),
])
def test_entries_of_a_tile_are_known_where_tiles_are_alike(counts, entries):
    """Rounded up to whole rounds; 0 where one tile needs fewer rounds than another."""
    assert [band.entries for band in bands(np.array(counts), 128 if counts[0] > 100 else 32)] == entries


def test_long_and_short_segments_are_worked_on_apart():
    found = bands(np.array([5040] + [6] * 32), 128)
    assert [(band.width, band.last - band.first) for band in found] == [(128, 1), (4, 32)]


@pytest.mark.parametrize("rows_of_part", [None, 512, 7])
def test_parts_hold_every_row_once(plan, rows_of_part):
    tables = pack(plan, targets_only=False, rows_of_part=rows_of_part)
    part, start, count, padding = columns(tables, "part", tables.parts, 4)
    assert np.array_equal(padding, plan.pair_padding[table(tables, "part_pair", tables.parts)[part]])
    rows = np.sort(np.concatenate([np.arange(s, s + c) for s, c in zip(start, count, strict=True)]))
    assert np.array_equal(rows, np.arange(plan.rows))
    assert (np.diff(count) <= 0).all()
    if rows_of_part is None:
        assert tables.parts == len(plan.pair_clause)
    else:
        assert count.max() <= rows_of_part


def test_nodes_read_only_lower_levels(plan):
    tables = pack(plan, targets_only=False)
    begin, end = columns(tables, "level", tables.levels, 2)
    left, right = columns(tables, "node", plan.nodes, 2)
    assert [0, *end] == [*begin, plan.nodes]
    for first, last in zip(begin, end, strict=True):
        assert last > first
        assert max(left[first:last].max(), right[first:last].max()) < plan.active + 1 + first


def test_products_are_those_of_the_plan(plan):
    """Rows and nodes were renumbered: what every row multiplies, in atoms, must not have changed."""
    tables = pack(plan, targets_only=False)
    values = np.random.default_rng(0).random(plan.active + 1)
    values[plan.active] = 1

    def rows(left, right, row_left, row_right):
        X = list(values)
        for a, b in zip(left, right, strict=True):
            X.append(X[a] * X[b])
        X = np.array(X)
        return X[row_left.astype(np.int64)] * X[row_right.astype(np.int64)]

    mine = rows(*columns(tables, "node", plan.nodes, 2), *columns(tables, "row", plan.rows, 4)[:2])
    assert np.allclose(mine, rows(plan.node_left, plan.node_right, plan.row_left, plan.row_right), rtol=1e-12)


def test_every_factor_of_a_row_is_a_use(plan):
    tables = pack(plan, targets_only=False)
    uses = len(tables.use_counts)
    owner, start, count, _ = columns(tables, "use", uses, 4)
    other = columns(tables, "use_of", 2 * plan.rows, 4)[0]
    mine = sorted((x, o) for x, s, c in zip(owner, start, count, strict=True) for o in other[s : s + c])
    left, right = columns(tables, "row", plan.rows, 4)[:2]
    both = [*zip(left, right, strict=True), *zip(right, left, strict=True)]
    assert mine == sorted((x, o) for x, o in both if x != plan.active)


def test_tables_begin_with_a_sector(plan):
    """So that one load of two or four numbers is aligned, and a sector is four such loads or two."""
    tables = pack(plan, targets_only=True)
    assert all(start % 8 == 0 for start in (*tables.at, *tables.of))
    assert len(tables.indices) % 8 == 0


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("hard", [False, True])
def test_rows_of_the_workspace_do_not_overlap(plan, hard, gradient):
    tables = pack(plan, targets_only=True, rows_of_part=100)
    what = layout(tables, 128, 8, 5, hard=hard, neural_only=True, gradient=gradient)
    rows = what.row._asdict()
    assert list(rows.values()) == sorted(rows.values())
    assert rows["clause_z"] - rows["part"] == tables.parts
    assert rows["pair"] - rows["bottom"] == 1
    assert (rows["end"] > rows["g_value"]) == gradient
    unsplit = layout(pack(plan, True), 32, 32, 1, hard=True, neural_only=True, gradient=False)
    assert unsplit.row.part == unsplit.row.pair


def test_a_layout_has_a_short_name_of_its_own(plan):
    tables = pack(plan, targets_only=True)
    names = {repr(layout(tables, 32, 32, 1, hard=True, neural_only=n, gradient=g)) for n in (0, 1) for g in (0, 1)}
    assert len(names) == 4 and max(map(len, names)) < 30
