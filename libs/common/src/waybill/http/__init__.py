"""What every HTTP service shares: problem documents, safe headers and an access log."""

from waybill.http.access_log import AccessLog
from waybill.http.headers import STRICT_POLICY, SafeHeaders
from waybill.http.problems import Problem, install

__all__ = ["STRICT_POLICY", "AccessLog", "Problem", "SafeHeaders", "install"]
