"""The public names of `pdprivacy.amplification.suppression`."""

from pdprivacy.amplification import suppression as _home
from pdprivacy.amplification.suppression import *  # noqa: F403
from pdprivacy.amplification.suppression import __all__ as __all__

__doc__ = _home.__doc__
