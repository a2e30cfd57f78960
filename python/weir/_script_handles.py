"""Native objects of the users of a script."""

from weir._weir import ScriptEvent, ScriptRequest, ScriptResponse, ScriptSession, StreamStep

__all__ = ["ScriptEvent", "ScriptRequest", "ScriptResponse", "ScriptSession", "StreamStep"]
