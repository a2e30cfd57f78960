-- The table `wrk` of a script, and the functions that the load calls. It is run once in each interpreter, before the
-- script, with functions of the load in `native`, and returns a table of entry points.
local native = ...
local buffer = require("string.buffer")
local pairs, tostring, type = pairs, tostring, type

wrk = {
   scheme = "http",
   host = "localhost",
   method = "GET",
   path = "/",
   headers = {},
   lookup = native.lookup,
   connect = native.connect,
}
package.loaded.wrk = wrk
local wrk = wrk

local function printable(value)
   local kind = type(value)
   if kind == "string" or kind == "number" then
      return value
   end
   return tostring(value)
end

local out = buffer.new(1024)

function wrk.format(method, path, headers, body)
   headers = headers or wrk.headers
   body = body or wrk.body
   out:reset()
   out:put(printable(method or wrk.method), " ", printable(path or wrk.path), " HTTP/1.1\r\n")
   if not headers["Host"] then
      -- The table of the caller gets it, as in wrk.
      headers["Host"] = wrk.headers["Host"]
   end
   for name, value in pairs(headers) do
      local length = type(name) == "string" and #name
      -- As in wrk, the length is always that of the body.
      if not (length == 14 and name:lower() == "content-length") then
         if length == 17 and name:lower() == "transfer-encoding" then
            error(native.coding_error(tostring(value)), 2)
         end
         out:put(printable(name), ": ", printable(value), "\r\n")
      end
   end
   if body then
      body = printable(body)
      out:put("Content-Length: ", #tostring(body), "\r\n\r\n", body)
   else
      out:put("\r\n")
   end
   return out:get()
end

-- Addresses of a host that accept connections.
function wrk.resolve(host, service)
   local accepted = {}
   for _, address in ipairs(wrk.lookup(host, service)) do
      if wrk.connect(address) then
         accepted[#accepted + 1] = address
      end
   end
   wrk.addrs = accepted
end

function wrk.setup(thread)
   if type(setup) == "function" then
      setup(thread)
   end
end

function wrk.init(args)
   if not wrk.headers["Host"] then
      local host = wrk.host
      if host:find(":", 1, true) then
         host = "[" .. host .. "]"
      end
      if wrk.port then
         host = host .. ":" .. wrk.port
      end
      wrk.headers["Host"] = host
   end
   if type(init) == "function" then
      init(args)
   end
   local prepared = wrk.format()
   wrk.request = function()
      return prepared
   end
end

local entries = {}

function entries.setup(thread)
   wrk.setup(thread)
end

function entries.init(args)
   wrk.init(args)
end

-- A script may replace its functions at any time, so they are looked up at each call.
function entries.request()
   if type(request) == "function" then
      return request()
   end
   return wrk.request()
end

function entries.delay()
   return delay()
end

-- The table of headers belongs to the load, which uses it again for the same head.
function entries.response(status, headers, body)
   local copy = {}
   for name, value in pairs(headers) do
      copy[name] = value
   end
   response(status, copy, body)
end

function entries.done(summary, latency, requests)
   done(summary, latency, requests)
end

function entries.defines(name)
   return type(_G[name]) == "function"
end

function entries.flush()
   io.stdout:flush()
end

return entries
