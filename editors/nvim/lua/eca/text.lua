-- Makes texts of models, tools and files safe to show.
local M = {}

local names = {}
for byte = 0, 31 do
  -- The pictures U+2400 to U+241F stand for control characters.
  names[string.char(byte)] = "\226\144" .. string.char(128 + byte)
end
names["\127"] = "\226\144\161"
names["\t"], names["\n"] = nil, nil

-- Replaces control characters, and characters that reorder or hide text (bidirectional controls, zero-width
-- characters, tags).
function M.clean(text)
  text = tostring(text or ""):gsub("\r\n", "\n")
  if text:find("[%z\1-\8\11-\31\127]") then text = text:gsub("[%z\1-\8\11-\31\127]", names) end
  if text:find("[\194\216\226\239\243]") then
    text = text:gsub("\194([\128-\159])", function(c) return ("<%02x>"):format(c:byte()) end)
    text = text:gsub("\216\156", "<061c>")
    text = text:gsub("\226\128([\139-\143\170-\174])", function(c) return ("<20%02x>"):format(c:byte() - 128) end)
    text = text:gsub("\226\129([\160-\175])", function(c) return ("<20%02x>"):format(c:byte() - 64) end)
    text = text:gsub("\239\187\191", "<feff>")
    text = text:gsub("\243\160[\128-\129][\128-\191]", "<tag>")
  end
  return text
end

-- One line of at most `width` characters.
function M.line(text, width)
  text = M.clean(text):gsub("%s+", " ")
  text = vim.trim(text)
  if width and vim.fn.strchars(text) > width then text = vim.fn.strcharpart(text, 0, width - 1) .. "…" end
  return text
end

-- Text for a status line, where a percent sign would begin an expression.
function M.status(text, width) return (M.line(text, width):gsub("%%", "%%%%")) end

function M.lines(text) return vim.split((M.clean(text):gsub("\n+$", "")), "\n", { plain = true }) end

M.in_chat = function() end -- (message, level): shows a notice in the chat of this tab; false without a chat

-- Notifies the user. A text of several lines goes to the chat: Neovim would wait for a key press, and would take
-- the next key that the user types for it.
function M.notify(message, level)
  message, level = M.clean(message), level or vim.log.levels.INFO
  local room = vim.o.columns - 20
  local fits = not message:find("\n") and vim.fn.strdisplaywidth(message) < room
  if not fits and M.in_chat(message, level) then message = M.line(message:match("[^\n]*"), math.max(room, 20)) end
  vim.notify("eca: " .. message, level)
end

function M.warn(message) M.notify(message, vim.log.levels.WARN) end

function M.error(message) M.notify(message, vim.log.levels.ERROR) end

-- JSON with one member per line, for arguments of tools.
function M.pretty(value, indent)
  indent = indent or ""
  if type(value) ~= "table" then return type(value) == "string" and value or vim.json.encode(value) end
  local out, keys = {}, vim.tbl_keys(value)
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local inner = M.pretty(value[key], indent .. "  ")
    local separator = inner:find("\n") and (":\n" .. indent .. "  ") or ": "
    out[#out + 1] = tostring(key) .. separator .. inner:gsub("\n", "\n" .. indent .. "  ")
  end
  return table.concat(out, "\n" .. indent)
end

-- A random identifier (UUID, version 4).
function M.uuid()
  local bytes = { vim.uv.random(16):byte(1, 16) }
  bytes[7] = 0x40 + bytes[7] % 16
  bytes[9] = 0x80 + bytes[9] % 64
  return ("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x"):format(unpack(bytes))
end

-- A path relative to the current directory, if it is inside.
function M.path(path) return M.line(vim.fn.fnamemodify(path or "", ":~:.")) end

return M
