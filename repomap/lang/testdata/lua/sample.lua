#!/usr/bin/lua
--[[ function no() end ]]
local M = {}
-- function nor() end
function M.open(path, mode)
  local function inner() end
  local s = [==[ function no() ]] end ]==]
end
function M.Class:method(a) return a end
local function helper(...) end
M.direct = function(x) return x end
local lambda = function() end
M.table = { function() end }
function global() end
return M

describe("x", function()
   local function hidden() end
   local quiet = function() end
end)

return {
  shown = function(a)
    return a
  end,
}
