"""What every HTTP service shares: problem documents and safe headers."""

from waybill.http.headers import STRICT_POLICY, SafeHeaders
from waybill.http.problems import Problem, install

__all__ = ["STRICT_POLICY", "Problem", "SafeHeaders", "install"]
