"""The public names of `pdprivacy.core.sensitivities`."""

from pdprivacy.core import sensitivities as _home
from pdprivacy.core.sensitivities import *  # noqa: F403
from pdprivacy.core.sensitivities import __all__ as __all__

__doc__ = _home.__doc__
