-- A path and a header that differ in each request.
local number = 0

function request()
   number = number + 1
   wrk.headers["X-Number"] = number
   return wrk.format("GET", "/items/" .. number)
end
