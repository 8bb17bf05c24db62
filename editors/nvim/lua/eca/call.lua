-- The text of a tool call: one line, and the whole call.
local M = {}
local text = require("eca.text")

local icons = { preparing = "…", waiting = "?", running = "▶", done = "✓", failed = "✗", rejected = "⊘" }
-- The text for each code of a rejected call.
local rejections = {
  userChoiceDeny = "you rejected it",
  userConfigDeny = "the configuration does not allow it",
  userPromptStop = "you stopped the turn",
  userStop = "the turn ended before it ran",
  hookRejected = "a hook rejected it",
}
local colors = { waiting = "EcaToolAsk", failed = "EcaToolError", rejected = "EcaToolError" }

local function seconds(ms) return type(ms) == "number" and ms >= 100 and (" · %.1f s"):format(ms / 1000) or "" end

function M.name(call) return text.line(("%s__%s"):format(call.server or "?", call.name or "?"), 100) end

function M.header(call)
  local details = call.details or {}
  local words = text.line(call.summary or ("Call " .. M.name(call)), 300)
  if details.type == "fileChange" then
    words = words .. (" (+%d −%d)"):format(details.linesAdded or 0, details.linesRemoved or 0)
  elseif details.type == "subagent" then
    words = words .. (" · step %d · Enter opens it"):format(details.step or 0)
  elseif call.state == "preparing" and (call.size or 0) > 4096 then
    words = words .. (" (%d KB so far)"):format(call.size / 1024)
  end
  if call.state == "waiting" then
    words = words .. " · waits for you: ga"
  elseif call.state == "rejected" then
    words = words .. " · rejected"
  end
  return icons[call.state] .. " " .. words .. seconds(call.ms), colors[call.state] or "EcaTool"
end

-- The lines of a call, and the highlight groups of some of them by line number.
function M.lines(call, with_outputs)
  local lines, kinds = {}, {}
  local function add(s, kind)
    for _, line in ipairs(text.lines(s)) do
      lines[#lines + 1] = line
      kinds[#lines] = kind
    end
  end
  local details, arguments = call.details or {}, type(call.arguments) == "table" and call.arguments or {}
  add(M.name(call), "EcaSystem")
  if call.permission and call.permission.reason then add(call.permission.reason, "EcaSystem") end
  if details.type == "fileChange" then
    add(tostring(details.path))
    for _, line in ipairs(text.lines(details.diff)) do
      local sign = line:sub(1, 1)
      lines[#lines + 1] = line
      kinds[#lines] = sign == "+" and "DiffAdd" or sign == "-" and "DiffDelete" or sign == "@" and "EcaSystem" or nil
    end
  elseif type(arguments.command) == "string" then
    for i, line in ipairs(text.lines(arguments.command)) do
      add((i == 1 and "$ " or "  ") .. line, "EcaToolAsk")
    end
    for _, key in ipairs({ "working_directory", "background", "timeout", "outside" }) do
      if arguments[key] ~= nil then add(key .. ": " .. tostring(arguments[key])) end
    end
    for _, effect in ipairs(details.effects or {}) do
      local parts = { effect.command, effect.effect, effect.target, effect.reason }
      add(
        "· "
          .. table.concat(
            vim.tbl_filter(
              function(part) return part ~= nil and part ~= "" end,
              { parts[1] or "", parts[2] or "", parts[3] or "", parts[4] or "" }
            ),
            " · "
          )
      )
    end
    if details.sandbox then
      add(("sandbox: %s, network: %s"):format(tostring(details.sandbox.level), tostring(details.sandbox.network)))
    end
  elseif next(arguments) then
    add(text.pretty(arguments))
  end
  if with_outputs then
    for _, output in ipairs(call.outputs or {}) do
      add("")
      add(output.text or "")
    end
    if call.reason then add("rejected: " .. (rejections[call.reason] or tostring(call.reason))) end
  end
  return lines, kinds
end

function M.tasks(details)
  local lines, kinds = {}, {}
  local icon = { done = "✓", ["in-progress"] = "▶", pending = "·" }
  for _, task in ipairs(details.tasks or {}) do
    local blocked = task.isBlocked and " (blocked)" or ""
    lines[#lines + 1] = (icon[task.status] or "·") .. " " .. text.line(task.subject, 200) .. blocked
    kinds[#lines] = task.status == "in-progress" and "EcaBusy" or nil
  end
  return lines, kinds
end

return M
