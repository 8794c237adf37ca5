"""An estimate is given only where recent documents of the size agree."""

from __future__ import annotations

from waybill_convert.estimates import Estimates


def test_estimates_are_given_where_they_are_good() -> None:
    even = Estimates([(1000 * n, 2.0 + n / 100) for n in range(1, 60)])
    assert even.remaining(30_000, 0.0) in (2, 3)
    assert even.remaining(30_000, 1.5) == 1
    assert even.remaining(30_000, 60.0) is None, "an outlier: nobody knows"
    assert even.remaining(50_000_000, 0.0) is None, "nothing of that size"
    assert Estimates([(1000, 1.0)] * 4).remaining(1000, 0) is None, "too few"
    wild = Estimates([(1000, 0.1 if n % 2 else 30.0) for n in range(50)])
    assert wild.remaining(1000, 0) is None, "they do not agree"
    mostly = Estimates([(1000, 4.0)] * 13 + [(1000, 500.0)] * 2)
    assert mostly.remaining(1000, 0) == 4, "two outliers do not matter"
