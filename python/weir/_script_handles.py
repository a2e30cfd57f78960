"""Native objects of the users of a script."""

from weir._weir import CallSchemas, ScriptEvent, ScriptRequest, ScriptResponse, ScriptSession, StreamStep

__all__ = ["CallSchemas", "ScriptEvent", "ScriptRequest", "ScriptResponse", "ScriptSession", "StreamStep"]
