-- A daemon that misbehaves: nvim -l fake.lua KIND [--version | server]; or, with the kind mcp, an MCP server.
local kind, what = arg[1], arg[2]
if what == "--version" then
  local versions = { other = "gcc 12.2.0", old = "eca 0.0.9" }
  io.stdout:write((versions[kind] or "eca 9.9.9") .. "\n")
  return
end

local function send(body)
  io.stdout:write(("Content-Length: %d\r\n\r\n%s"):format(#body, body))
  io.stdout:flush()
end

local function notify(method, params) send(('{"jsonrpc":"2.0","method":"%s","params":%s}'):format(method, params)) end

local function content(id, role, json)
  notify("chat/contentReceived", ('{"chatId":"%s","role":"%s","content":%s}'):format(id, role, json))
end

if kind == "mcp" then
  local results = {
    initialize = '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}',
    ["tools/list"] = '{"tools":[{"name":"t","description":"To look.","inputSchema":{"type":"object"}}]}',
    ["tools/call"] = '{"content":[{"type":"text","text":"from afar"}]}',
  }
  for line in io.lines() do
    local message = vim.json.decode(line)
    local result = results[message.method]
    if result then
      io.stdout:write(('{"jsonrpc":"2.0","id":%d,"result":%s}\n'):format(message.id, result))
      io.stdout:flush()
    end
  end
  os.exit(0)
end
if kind == "dies" then
  io.stderr:write("cannot read config.json: line 3\n")
  os.exit(3)
end
while true do
  local length = tonumber((io.read("*l") or "x"):match("%d+"))
  if not length then break end
  io.read("*l")
  local message = vim.json.decode(io.read(length))
  if kind == "hangs" then message.method = nil end
  if message.method == "initialize" then
    send(('{"jsonrpc":"2.0","id":%d,"result":{}}'):format(message.id))
  elseif message.method == "initialized" and kind == "login" then
    notify("providers/updated", '{"id":"x","auth":{"status":"unauthenticated"}}')
    notify("providers/updated", '{"id":"x","auth":{"status":"authenticated"}}')
  elseif message.method == "initialized" and kind == "malformed" then
    io.stdout:write("a line of a library\n\n")
    send("{not json")
    send("[1,2,3]")
    send('{"jsonrpc":"2.0","id":77,"result":{}}')
    send('{"jsonrpc":"2.0","id":"x","method":"editor/nonsense","params":5}')
    notify("chat/contentReceived", "null")
    notify("chat/contentReceived", '{"chatId":5,"role":"assistant","content":{"type":"text","text":"x"}}')
    content("c", "assistant", '"text"')
    content("c", "assistant", '{"type":"toolCalled"}')
    content("c", "assistant", '{"type":"reasonText","id":"never-begun","text":"x"}')
    content("c", "assistant", '{"type":"unheard-of"}')
    notify("config/updated", '{"chat":{"models":null}}')
    notify("tool/serverUpdated", '{"status":"failed"}')
    notify("no/such/method", "{}")
    notify("$/showMessage", '{"type":"info","message":"still here"}')
  elseif message.method == "chat/prompt" and kind ~= "mute" then
    local id = message.params.chatId
    send(('{"jsonrpc":"2.0","id":%d,"result":{"chatId":"%s","model":"m","status":"prompting"}}'):format(message.id, id))
    content(id, "assistant", '{"type":"text","text":"alive"}')
    content(id, "system", '{"type":"progress","state":"finished"}')
  elseif message.method == "exit" then
    os.exit(0)
  end
end
