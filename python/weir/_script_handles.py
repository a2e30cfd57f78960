"""Native objects of the users of a script."""

from weir._weir import CallRoute, CallSchemas, ScriptEvent, ScriptRequest, ScriptResponse, ScriptSession, StreamStep

__all__ = ["CallRoute", "CallSchemas", "ScriptEvent", "ScriptRequest", "ScriptResponse", "ScriptSession", "StreamStep"]
