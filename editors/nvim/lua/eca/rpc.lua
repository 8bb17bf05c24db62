-- JSON-RPC with a child process, in messages framed by Content-Length.
--
-- Messages are handled in order on the main loop, for at most `slice` at a time, so that a flood of messages does
-- not keep the user from typing. Invalid output of the child raises no error; it is reported to `on_problem`.
local uv = vim.uv
local text = require("eca.text")

local M = {}
M.__index = M

local slice = 8e6 -- nanoseconds
local max_body = 512 * 1024 * 1024 -- bytes; a header that announces more is reported as invalid

-- Returns a function that takes chunks of bytes and calls on_body with each message's body.
local function parser(on_body, on_garbage)
  local chunks, size, need = {}, 0, nil
  local function rest(s)
    chunks, size = { s }, #s
  end
  return function(chunk)
    chunks[#chunks + 1] = chunk
    size = size + #chunk
    while size > 0 and (not need or size >= need) do
      local s = table.concat(chunks)
      if need then
        rest(s:sub(need + 1))
        local body = s:sub(1, need)
        need = nil
        on_body(body)
      else
        local from, to = s:find("\r?\n\r?\n")
        if not from then
          rest(s)
          if size > 65536 then
            on_garbage(s)
            rest(s:match("Content%-Length:[^\n]*$") or "")
          end
          return
        end
        local header = s:sub(1, from - 1)
        local length = tonumber(header:lower():match("content%-length:%s*(%d+)"))
        if not header:find("^%s*[Cc]ontent%-") or not length or length > max_body then on_garbage(header) end
        if length and length <= max_body then need = length end
        rest(s:sub(to + 1))
      end
    end
  end
end

-- Starts `opts.cmd`. The callbacks on_notification(method, params), on_request(id, method, params),
-- on_problem(message), on_stderr(chunk) and on_exit(code, signal) run on the main loop. Returns nil and a reason if
-- the program does not start.
function M.start(opts)
  local self = setmetatable({ opts = opts, ids = 0, pending = {}, queue = {}, first = 1, last = 0, alive = true }, M)
  local stdin, stdout, stderr = uv.new_pipe(), uv.new_pipe(), uv.new_pipe()
  self.stdin = stdin
  local env = vim.fn.environ()
  for key, value in pairs(opts.env or {}) do
    env[key] = tostring(value)
  end
  local list = {}
  for key, value in pairs(env) do
    list[#list + 1] = key .. "=" .. value
  end
  local args = vim.list_slice(opts.cmd, 2)
  local handle, pid = uv.spawn(opts.cmd[1], {
    args = args,
    cwd = opts.cwd,
    env = list,
    stdio = { stdin, stdout, stderr },
    hide = true,
  }, function(code, signal)
    -- Output from before the exit may not have been read yet.
    vim.defer_fn(function()
      self:ended(code, signal)
      for _, pipe in ipairs({ stdin, stdout, stderr }) do
        if not pipe:is_closing() then pipe:close() end
      end
      if not self.handle:is_closing() then self.handle:close() end
    end, 50)
  end)
  if not handle then
    for _, pipe in ipairs({ stdin, stdout, stderr }) do
      pipe:close()
    end
    return nil, tostring(pid)
  end
  self.handle, self.pid = handle, pid
  local feed = parser(
    function(body) self:receive(body) end,
    function(garbage) self:problem("wrote something that is not the protocol to its output: " .. garbage:sub(1, 1000)) end
  )
  stdout:read_start(function(_, chunk)
    if chunk then feed(chunk) end
  end)
  stderr:read_start(function(_, chunk)
    if chunk then vim.schedule(function() opts.on_stderr(chunk) end) end
  end)
  return self
end

-- May be called from fast events (`:h api-fast`).
function M:problem(message)
  vim.schedule(function() self.opts.on_problem(text.line(message, 300)) end)
end

-- Runs in a fast event (`:h api-fast`), where few functions may be called.
function M:receive(body)
  local ok, message = pcall(vim.json.decode, body, { luanil = { object = true, array = true } })
  if not ok or type(message) ~= "table" then
    self:problem(("sent a message that is not JSON (%d bytes)"):format(#body))
    return
  end
  local waiting = not message.method and message.id ~= nil and self.pending[message.id]
  if waiting and waiting.instant then
    self.pending[message.id] = nil
    waiting.instant(message)
    return
  end
  self.last = self.last + 1
  self.queue[self.last] = message
  if not self.draining then
    self.draining = true
    vim.schedule(function() self:drain() end)
  end
end

function M:drain()
  local deadline = uv.hrtime() + slice
  while self.first <= self.last do
    local message = self.queue[self.first]
    self.queue[self.first] = nil
    self.first = self.first + 1
    local ok, err = xpcall(self.handle_message, debug.traceback, self, message)
    if not ok then
      local name = message.method or "an answer"
      self.opts.on_problem(("sent %s that the plugin cannot use: %s"):format(text.line(name, 60), err))
    end
    if uv.hrtime() > deadline then
      vim.defer_fn(function() self:drain() end, 4)
      return
    end
  end
  self.draining = false
end

function M:handle_message(message)
  if type(message.method) == "string" then
    local params = type(message.params) == "table" and message.params or {}
    if message.id ~= nil then
      self.opts.on_request(message.id, message.method, params)
    else
      self.opts.on_notification(message.method, params)
    end
    return
  end
  local waiting = message.id ~= nil and self.pending[message.id]
  if not waiting then return end
  self.pending[message.id] = nil
  if message.error ~= nil then
    local err = type(message.error) == "table" and message.error or { message = tostring(message.error) }
    waiting.callback(err, nil)
  else
    waiting.callback(nil, message.result)
  end
end

function M:write(message)
  if not self.alive then return false end
  message.jsonrpc = "2.0"
  local body = vim.json.encode(message)
  self.stdin:write(("Content-Length: %d\r\n\r\n%s"):format(#body, body))
  return true
end

function M:notify(method, params) return self:write({ method = method, params = params or vim.empty_dict() }) end

function M:respond(id, result) return self:write({ id = id, result = result == nil and vim.NIL or result }) end

function M:refuse(id, code, message) return self:write({ id = id, error = { code = code, message = message } }) end

-- Calls callback(err, result) once: when the answer arrives, the time limit ends, or the process ends.
function M:request(method, params, callback, timeout)
  self.ids = self.ids + 1
  local id = self.ids
  self.pending[id] = { callback = callback, method = method }
  if not self:write({ id = id, method = method, params = params or vim.empty_dict() }) then
    self.pending[id] = nil
    callback({ code = 0, message = "eca is not running" })
    return
  end
  vim.defer_fn(function()
    local waiting = self.pending[id]
    if waiting then
      self.pending[id] = nil
      local seconds = math.floor(timeout / 1000)
      waiting.callback({ code = 0, message = ("no answer to %s within %d s"):format(method, seconds), late = true })
    end
  end, timeout)
end

-- Blocks until the answer arrives, for omnifunc, which cannot wait in the background. Returns nil after the limit.
function M:request_sync(method, params, timeout)
  self.ids = self.ids + 1
  local id, answer = self.ids, nil
  self.pending[id] = {
    instant = function(message) answer = message end,
  }
  if self:write({ id = id, method = method, params = params }) then
    vim.wait(timeout, function() return answer ~= nil end, 5, true)
  end
  self.pending[id] = nil
  return answer and answer.result
end

function M:ended(code, signal)
  self.alive = false
  self:drain()
  local pending = self.pending
  self.pending = {}
  for _, waiting in pairs(pending) do
    if waiting.callback then pcall(waiting.callback, { code = 0, message = "eca has ended" }) end
  end
  self.opts.on_exit(code, signal)
end

function M:kill(signal)
  if self.handle and not self.handle:is_closing() then self.handle:kill(signal or "sigterm") end
end

M.parser = parser

return M
