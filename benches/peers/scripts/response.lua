-- One request; each response is looked at.
local wrong = 0

function response(status, headers, body)
   if status ~= 200 or not headers["Content-Type"] or #body == 0 then
      wrong = wrong + 1
   end
end
