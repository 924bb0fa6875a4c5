"""GID tables: the right index is found by value and type, whatever the holes and the size of the table."""

from __future__ import annotations

from pathlib import Path

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gids import (
    Gid,
    describe,
    find_v2,
    mapped,
    read_table,
)

A, B = "198.51.100.1", "198.51.100.2"


@pytest.mark.parametrize(
    ("address", "gid"),
    [
        ("198.51.100.1", "0000:0000:0000:0000:0000:ffff:c633:6401"),
        ("203.0.113.2/24", "0000:0000:0000:0000:0000:ffff:cb00:7102"),
    ],
)
def test_mapped(address: str, gid: str) -> None:
    assert mapped(address) == gid


@pytest.mark.parametrize(
    ("address", "table", "index"),
    [
        pytest.param(A, fake.table_of(A, 3), 3, id="head"),
        pytest.param(B, fake.table_of(B, 5), 5, id="worker-at-5"),
        pytest.param(A, {2: (mapped(A), fake.V1)}, None, id="only-v1"),
        pytest.param(A, {1: (fake.LINK_LOCAL, fake.V2)}, None, id="only-link-local-v2"),
        pytest.param(A, fake.table_of(B, 3), None, id="another-address"),
        pytest.param(A, {}, None, id="empty"),
        pytest.param(A, {1023: (mapped(A), fake.V2)}, 1023, id="last-of-1024"),
    ],
)
def test_f01_index_by_value_and_type(
    tmp_path: Path, address: str, table: fake.Table, index: int | None
) -> None:
    fake.add_device(tmp_path, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", table, slots=1024)
    entries = read_table(tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1")
    found = find_v2(entries, address)
    assert (found.index if found else None) == index


def test_f02_index_moves_between_reads(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1"
    fake.add_device(tmp_path, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of(A, 3))
    before = find_v2(read_table(port), A)
    (port / "gid_attrs/types/3").unlink()
    (port / "gid_attrs/types/3").symlink_to(fake.EINVAL_FILE)
    (port / "gid_attrs/types/4").unlink()
    fake.put(port / "gids/3", fake.ZERO)
    fake.put(port / "gids/4", mapped(A))
    fake.put(port / "gid_attrs/types/4", fake.V2)
    after = find_v2(read_table(port), A)
    assert (before and before.index, after and after.index) == (3, 4)


def test_empty_slots_are_left_out_and_owners_kept_in_order(tmp_path: Path) -> None:
    fake.add_device(tmp_path, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of(A, 7), slots=255)
    entries = read_table(tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1")
    assert [entry.index for entry in entries] == [0, 1, 6, 7]
    assert [entry.netdev for entry in entries] == ["enp1s0f1np1"] * 4


def test_slot_that_is_emptied_while_being_read_hides_no_other(tmp_path: Path) -> None:
    fake.add_device(tmp_path, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of(A, 5))
    port = tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1"
    fake.put(port / "gids/2", mapped(B))
    found = find_v2(read_table(port), A)
    assert found and found.index == 5


def test_describe_names_what_was_found() -> None:
    table = [Gid(0, fake.LINK_LOCAL, fake.V1), Gid(1, fake.LINK_LOCAL, fake.V2), Gid(3, mapped(A), fake.V2)]
    assert describe(table) == "0 link-local v1, 1 link-local v2, 3 198.51.100.1 v2"
    assert describe([]) == "empty"
