# SPDX-License-Identifier: Apache-2.0
"""What tests in Python assert more than once."""


def refuses(kind, call, *words) -> None:
    """`call` raises `kind`, and the message has the words."""
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"'{error}' does not say {missing}"
        return
    raise AssertionError(f"no {kind.__name__}")


def near(ours, theirs, limit) -> float:
    """Shapes are equal, and the largest difference is at most `limit` of the largest figure; returns that part."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    apart = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert apart <= limit, f"{apart:.2e} apart, {limit:.0e} allowed"
    return apart
