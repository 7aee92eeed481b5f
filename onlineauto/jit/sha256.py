"""SHA-256 as Python has it built in: `hashlib` loads OpenSSL, which takes 3 MB of memory."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256

__all__ = ["sha256"]
