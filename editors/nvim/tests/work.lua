-- Errors after edits, budgets, fallback models, search and what providers do themselves, as the user sees them.
local t = ...

local cost = { input = 100, output = 200 } -- dollars per million tokens

-- The configuration of a test; WIRE is a server that speaks OpenAI's Responses API, with the script in wire.yaml.
local function config(changes)
  local priced = { cost = cost, limit = { context = 100000, output = 1000 } }
  local all = { m = priced, n = priced }
  return vim.tbl_deep_extend("force", {
    providers = {
      tape = { api = "cassette", url = t.here .. "/tape.yaml", models = all },
      wire = { api = "openai-responses", url = assert(vim.env.WIRE), key = "k", fetchModels = false, models = all },
      away = { api = "openai-chat", url = "http://127.0.0.1:1", key = "k", fetchModels = false, models = all },
    },
    defaultModel = "tape/m",
    chat = { title = false },
    fetchModels = false,
  }, changes)
end

t.test("the result of an edit names the new errors of the editor", {
  config = config({ toolCall = { diagnostics = { editorWaitSeconds = 20 } } }),
}, function(e)
  -- A language server that does not like the number.
  e:lua([[
    vim.cmd.edit("old.txt")
    local ns = vim.api.nvim_create_namespace("test")
    local function check(_, buf)
      local bad = {}
      for i, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
        local message = line:find("%d") and "a number in " .. line or line:find("third") and "an old error"
        if message then bad[#bad + 1] = { lnum = i - 1, col = 0, message = message, source = "test", severity = 1 } end
      end
      vim.schedule(function() vim.diagnostic.set(ns, buf, bad) end)
    end
    local buf = vim.api.nvim_get_current_buf()
    check(nil, buf)
    vim.api.nvim_buf_attach(buf, false, { on_lines = check, on_reload = check })
  ]])
  e:prompt("repair"):asks("old.txt")
  e:type("<Esc>gaa"):shows("Told: old.txt:2:1: error: a number in 2nd.")
  t.lacks(e:chat(), "Told of the old error")
  e:idle()
  -- Nothing checks this file, so its edit does not wait.
  e:prompt("write"):asks("new.txt")
  local began = vim.uv.hrtime()
  e:type("<Esc>gaa"):shows("Written.")
  assert((vim.uv.hrtime() - began) / 1e9 < 15)
end)

local gopls = vim.env.ECA_GOPLS -- set in CI
if gopls then
  t.test("the symbols of a file are those of its language server", {
    config = config({ lsp = { gopls = { command = gopls, extensions = { ".go" } } } }),
  }, function(e)
    e:lua([[
      vim.fn.writefile({ "module m", "", "go 1.26" }, "go.mod")
      vim.fn.writefile({ "package m", "", "func Walrus() {}" }, "walrus.go")
    ]])
    e:prompt("outline"):shows("Outlined: Walrus.")
  end)
end

t.test("a budget asks, and costs are listed", { config = config({ budget = { turn = "$0.05" } }) }, function(e)
  e:prompt("spend"):asks("This turn's budget is used up: $0.0800 of $0.0500.")
  t.contains(e:float(), "Go on")
  e:type("<Esc>ga1"):shows("Spent.")
  t.contains(e:chat(), "80% of this turn's budget is spent: $0.0400 of $0.0500.")
  e:idle()
  e:prompt("/costs"):shows("| today | tape/m | 3 |")
  e:shows("This chat has cost **$0.1200**")
  e:idle()
  e:prompt("/budget chat $0.01"):shows("| chat | $0.1200 of $0.0100 | /budget |")
  e:idle()
  e:prompt("spend again"):asks("This chat's budget is used up")
  e:type("<Esc>ga2"):idle()
  t.equal(select(2, e:chat():gsub("Spent%.", "")), 1)
end)

t.test("a fallback model continues, and says so", {
  config = config({ defaultModel = "away/m", fallbackModels = { "tape/m" } }),
}, function(e)
  e:prompt("hello"):shows("Hello, **world**.")
  e:shows("away/m cannot be used: ")
  e:shows("tape/m continues this turn; the next prompt asks away/m first.")
  e:idle()
  t.contains(e:bar(), "away/m")
end)

t.test("the model of a role gives the title", {
  config = config({ chat = { title = true }, models = { title = "wire/n" } }),
}, function(e)
  e:prompt("hello"):shows("Hello, **world**.")
  t.await(
    "the title",
    function() return e:lua([[return require("eca.ui").latest.title]]) == "Named by another model" end
  )
end)

t.test("search finds a message, and a pinned chat says so", { config = config({}) }, function(e)
  e:prompt("hello walrus"):idle()
  e:lua([[vim.cmd("Eca new")]])
  e:prompt("/search walr* role:user"):shows("hello **walrus**")
  e:idle()
  e:prompt("/search seal"):shows("Nothing was found")
  e:idle()
  e:prompt("/pin"):shows("This chat is pinned")
end)

t.test("chats are deleted when they are old", { config = config({}) }, function(e)
  e:prompt("hello walrus"):idle()
  e:close()
  local other = t.editor({ config = config({ chatRetentionDays = 7 }) }, e)
  other:prompt("/search walr*"):shows("hello **walrus**")
  other:close()
  local age = vim.system({ assert(vim.env.AGE) }, { env = { AGED_STATE = e.root .. "/state/eca" } }):wait()
  assert(age.code == 0, age.stderr)
  other = t.editor({ config = config({ chatRetentionDays = 7 }) }, e)
  for _ = 1, 100 do -- chats are deleted in the background
    other:prompt("/search walr*"):idle()
    if other:chat():find("Nothing was found", 1, true) then break end
    vim.wait(100)
  end
  t.contains(other:chat(), "Nothing was found")
  other:close()
end)

t.test("an image that the model made is shown, and opened", {
  config = config({ providers = { wire = { models = { m = { imageGeneration = true } } } }, defaultModel = "wire/m" }),
}, function(e)
  e:prompt("draw"):shows("▣ image (image/png,")
  e:idle()
  t.contains(e:chat(), "image")
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("▣ image", "b")]])
  e:type("<CR>"):says("the image is in ")
  t.contains(e:said(), ".png")
end)

t.test("a search of the provider is shown with its sources", {
  config = config({ providers = { wire = { models = { m = { webSearch = true } } } }, defaultModel = "wire/m" }),
}, function(e)
  e:prompt("look up"):shows("[Downloads](https://go.example/dl)")
  t.contains(e:chat(), "It is out.")
  t.contains(e:chat(), "Web searching 'go release'")
  t.contains(e:chat(), "Sources:")
end)

t.test("a collector that is away is reported once", {
  config = config({
    otlp = { ["otel.exporter.otlp.endpoint"] = "http://127.0.0.1:1", ["otel.bsp.schedule.delay"] = "10ms" },
  }),
}, function(e)
  e:prompt("hello"):shows("Hello, **world**.")
  e:says("http://127.0.0.1:1")
  e:idle()
  e:prompt("hello again"):idle()
  vim.wait(2500) -- it tries again after 1 s
  t.equal(select(2, (e:said() .. "\n" .. e:chat()):gsub("http://127%.0%.0%.1:1", "")), 1)
end)
