# SPDX-License-Identifier: Apache-2.0
"""Assertions that several Python tests share."""


def refuses(kind, call, *words) -> None:
    """Asserts that `call` raises `kind` and that the message contains all `words`."""
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"'{error}' does not say {missing}"
        return
    raise AssertionError(f"no {kind.__name__}")


def near(ours, theirs, limit) -> float:
    """Asserts that the shapes are equal and that no element differs by more than `limit` times the largest absolute
    value in `theirs`. Returns the largest difference as a share of that value."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    apart = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert apart <= limit, f"{apart:.2e} apart, {limit:.0e} allowed"
    return apart
