"""Shows models, steps, plans and trees in a browser, live or as a page that needs neither network nor Python.

Needs the extra ``viewer`` (viser): ``pip install 'qdsim[viewer]'``. Servers listen on this machine only.
"""

from qdsim.viewer.things import save_html, show
from qdsim.viewer.viewer import Viewer

__all__ = ["Viewer", "save_html", "show"]
