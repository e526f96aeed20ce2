"""Quantities, as they stand in manifests and as the API server writes them."""

from __future__ import annotations

import pytest

from scaler.cluster.quantity import parse_quantity

QUANTITIES: dict[object, float | None] = {
    "0": 0.0,
    "0.05": 0.05,
    "50m": 0.05,
    "5e-2": 0.05,
    "1": 1.0,
    0: 0.0,
    "100u": 0.0001,
    "64Gi": 64 * 2.0**30,
    "1.5Ki": 1536.0,
    "2Ei": 2.0**61,
    "3G": 3e9,
    "1E": 1e18,
    "1E3": 1000.0,
    None: None,
}


@pytest.mark.parametrize(("text", "value"), QUANTITIES.items())
def test_quantity_is_read_as_kubernetes_writes_it(text: object, value: float | None) -> None:
    assert parse_quantity(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("text", ["ten", "", "1ki", "1 Gi", "Gi", "1KiB"])
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)
