"""What a notebook and a prompt show of frames: released, confidential, protected, or none of these."""

from pdprivacy.display.confidential import pages_of
from pdprivacy.display.frame import of_frame, page, text
from pdprivacy.display.notebook import (
    load_ipython_extension,
    register_where_running,
    unload_ipython_extension,
)
from pdprivacy.display.standing import Standing

__all__ = [
    "Standing",
    "load_ipython_extension",
    "of_frame",
    "page",
    "pages_of",
    "register_where_running",
    "text",
    "unload_ipython_extension",
]
