-- A day with the daemon and a scripted model.
local t = ...

t.test("a streamed answer, and its reasoning folded", {}, function(e)
  e:prompt("hello there"):shows("Hello, **world**.")
  e:idle()
  local chat = e:chat()
  t.contains(chat, "❯ hello there")
  t.contains(chat, "∴ Thought for")
  t.lacks(chat, "I should greet.")
  t.contains(chat, "Welcome")
  t.contains(e:bar(), "tape/m")
  t.contains(e:lua([[return require("eca").statusline()]]), "tape/m")
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("Thought for")]])
  e:type("<Tab>"):shows("  │ I should greet.")
  e:type("<Tab>")
  t.await("folding", function() return not e:chat():find("I should greet.", 1, true) end)
end)

t.test("an edit is shown with path and diff, approved, and on the disk", {}, function(e)
  e:lua([[vim.cmd.edit("old.txt")]])
  e:prompt("edit please"):asks("old.txt")
  t.contains(e:float(), "-second\n+2nd")
  t.contains(e:float(), e.ws .. "/old.txt")
  t.equal(e:file("old.txt"), "first line\nsecond\nthird\n")
  e:type("<Esc>gaa"):shows("Edited.")
  t.equal(e:file("old.txt"), "first line\n2nd\nthird\n")
  t.equal(e:float(), "")
  t.contains(e:chat(), "(+1 −1)")
  -- The buffer of the file shows what is on the disk.
  t.await(
    "the buffer to be read again",
    function() return e:lua([[return vim.api.nvim_buf_get_lines(vim.fn.bufnr("old.txt"), 1, 2, false)[1] ]]) == "2nd" end
  )
  -- Side by side, from the chat.
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("✓ ", "b")]])
  e:type("gd")
  t.await("the diff", function() return e:lua([[return vim.wo.diff]]) end)
  local sides = e:lua([[
    return vim.tbl_map(function(win)
      return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 1, 2, false)[1]
    end, vim.api.nvim_tabpage_list_wins(0))
  ]])
  t.equal(sides, { "second", "2nd" })
end)

t.test("a command is shown as a whole, and rejected", {}, function(e)
  e:prompt("shell please"):asks("$ printf a-first-part-that-is-rather-long-to-read\n  touch made")
  e:lua([[vim.cmd("Eca reject")]])
  e:shows("rejected")
  e:idle()
  t.equal(e:file("made"), nil)
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("⊘ ", "b")]])
  e:type("<Tab>"):shows("rejected: you rejected it")
  e:prompt("shell please"):asks("touch made")
  e:lua([[vim.cmd("Eca accept")]])
  e:shows("It ran.")
  t.equal(e:file("made"), "")
end)

t.test("rejected with words: they are the next prompt", {}, function(e)
  e:prompt("refuse this"):asks("refused")
  e:choose("use another name")
  e:type("<Esc>gaw"):shows("Another name it is.")
  t.contains(e:chat(), "❯ use another name")
  t.equal(e:file("refused"), nil)
end)

t.test("a long notice does not wait for a key", {}, function(e)
  e:prompt("hello"):idle()
  e:lua([[require("eca.text").warn(string.rep("long ", 100) .. "\nand a second line")]])
  e:shows("and a second line")
  assert(#e:said():match("long.*") < 160, e:said())
end)

t.test("typing never approves: the float has no focus", {}, function(e)
  e:prompt("twice"):asks("first")
  e:type("iaaa sss<Esc>")
  t.await(
    "the typed words",
    function() return e:lua("return vim.api.nvim_get_current_line()"):find("aaa sss", 1, true) end
  )
  t.equal(e:file("first"), nil)
  -- A decision gives the focus back, so that a doubled key does not decide about the next.
  e:type("gaaa<Esc>"):asks("second")
  t.equal(e:file("second"), nil)
  e:type("gaa"):shows("Both done.")
  t.equal(e:file("second"), "2")
end)

t.test("accepted and remembered for the session", {}, function(e)
  e:prompt("remember"):asks("r1")
  e:type("<Esc>gas"):shows("Remembered.")
  t.equal(e:file("r2"), "2")
end)

t.test("a question with options and words", {}, function(e)
  e:prompt("ask me"):asks("Which colour?")
  t.contains(e:float(), "2  Green: like grass")
  e:type("<Esc>ga2"):shows("You said Green.")
  e:idle()
  e:prompt("ask me"):asks("Which colour?")
  e:choose("something else")
  e:type("<Esc>gai"):shows("You said something.")
end)

t.test("stop in mid-stream, and the prompt after it", {}, function(e)
  e:prompt("slow"):shows("tick tick")
  e:stop()
  e:shows("Prompt stopped")
  e:prompt("hello"):shows("Hello, **world**.")
end)

t.test("steering: words said to a running turn", {}, function(e)
  e:prompt("steady"):shows("step step")
  e:prompt("hurry up"):says("sent to the running turn")
  e:shows("❯ hurry up")
  e:idle()
end)

t.test("what a steered turn did not read is sent as a prompt", {}, function(e)
  e:prompt("refuse it"):asks("refused")
  e:prompt("hello again"):lua([[vim.cmd("Eca reject")]])
  e:shows("Hello, **world**.")
end)

t.test("models, agents and completion of their names", {}, function(e)
  e:prompt("hello"):shows("Hello")
  e:idle()
  e:choose("tape/n")
  e:lua([[vim.cmd("Eca model")]])
  t.await("the model", function() return e:lua([[return require("eca.ui").latest.model]]) == "tape/n" end)
  e:lua([[vim.cmd("Eca agent plan")]])
  e:prompt("hello"):idle()
  t.equal(e:lua([[return require("eca.ui").latest.used_model]]), "tape/n")
  t.contains(e:bar(), "tape/n · plan")
  t.equal(e:lua([[return vim.fn.getcompletion("Eca model tape/", "cmdline")]]), { "tape/m", "tape/n" })
  e:lua([[vim.cmd("Eca model none/such")]])
  e:says("there is no model")
end)

t.test("completion of commands, contexts and files while typing", {}, function(e)
  e:lua([[vim.cmd.edit("old.txt") vim.cmd("Eca")]])
  t.await("the daemon", function() return e:lua([[return require("eca.server").state]]) == "running" end)
  local offered = [[
    local want = ...
    return vim.iter(vim.fn.complete_info({ "items" }).items):any(function(item) return vim.trim(item.word) == want end)
  ]]
  local function offers(typed, want)
    e:type("<Esc>ddi" .. typed)
    t.await(
      want .. " in the menu",
      function() return e:lua(offered, want) end,
      function() return e:lua([[return vim.inspect({ vim.fn.complete_info(), vim.api.nvim_get_current_line(), said })]]) end
    )
  end
  offers("/log", "/login")
  offers("see @ol", "@./old.txt")
  offers("see #wi", "#./with space.txt")
  offers("@cur", "@cursor")
  -- A menu that was closed stays closed, so that Enter sends.
  offers("look at @ol", "@./old.txt")
  e:type("<C-e>"):lua("vim.wait(200, function() return vim.fn.pumvisible() == 1 end)")
  t.equal(e:lua("return vim.fn.pumvisible()"), 0)
  offers("look at @ol", "@./old.txt")
  e:type("<CR>")
  t.await(
    "the completed word",
    function() return vim.trim(e:lua("return vim.api.nvim_get_current_line()")) == "look at @./old.txt" end
  )
  local contexts = e:lua([[return require("eca.complete").contexts("look at @./old.txt and @cursor")]])
  table.sort(contexts, function(a, b) return a.type > b.type end)
  t.equal(contexts[1], { type = "file", path = e.ws .. "/old.txt" })
  t.equal(contexts[2].path, e.ws .. "/old.txt")
  -- By hand, too.
  e:type("<Esc>")
  e:lua([[vim.api.nvim_buf_set_lines(0, 0, -1, false, { "/mode" }) vim.cmd("startinsert!")]])
  e:type("<C-x><C-o>")
  local line = e:lua([[return vim.api.nvim_get_current_line()]])
  assert(line:find("^/model"), line)
end)

t.test("a selection is added to the prompt, and rewritten", {}, function(e)
  e:lua([[vim.cmd.edit("old.txt") vim.cmd("2,3Eca add")]])
  t.contains(e:lua("return vim.api.nvim_get_current_line()"), "@" .. e.ws .. "/old.txt:L2-L3")
  e:lua([[vim.cmd.stopinsert() vim.cmd.wincmd("h") vim.cmd("2,2Eca rewrite upper case")]])
  e:says("a applies the rewrite")
  local second = [[return vim.api.nvim_buf_get_lines(vim.fn.bufnr("old.txt"), 1, 2, false)[1] ]]
  t.equal(e:lua(second), "second")
  e:type("a")
  t.await("the rewrite", function() return e:lua(second) == "SECOND" end)
end)

t.test("inline completion as ghost text", {}, function(e)
  e:lua([[vim.cmd.edit("old.txt") require("eca").complete()]])
  t.await(
    "ghost text",
    function()
      return e:lua([[
      local ns = vim.api.nvim_create_namespace("eca_inline")
      local marks = vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })
      return marks[1] and marks[1][4].virt_text[1][1]
    ]]) == " completed"
    end,
    function() return e:said() end
  )
  t.equal(e:lua([[return require("eca").accept_completion()]]), true)
  t.contains(e:lua([[return vim.api.nvim_get_current_line()]]), " completed")
end)

t.test("tasks, diagnostics, a background job", {}, function(e)
  e:prompt("tasks"):shows("☰ Tasks: 0 of 2")
  e:idle()
  e:lua([[
    vim.cmd("wincmd t") vim.cmd.edit("old.txt")
    local bad = { lnum = 1, col = 0, message = "a bad line", severity = vim.diagnostic.severity.ERROR }
    vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, { bad })
  ]])
  e:prompt("diagnose"):shows("Diagnosed: a bad line.")
  e:idle()
  e:prompt("background"):asks("job-output")
  e:type("<Esc>gaa"):shows("Started.")
  e:idle()
  t.await("the job in the bar", function() return e:bar():find("1 job", 1, true) end)
  e:choose("running", "output")
  e:lua([[vim.cmd("Eca jobs")]])
  t.await(
    "the output of the job",
    function() return e:lua([[return vim.api.nvim_get_current_line()]]):find("job-output", 1, true) end
  )
  e:choose("running", "kill")
  e:lua([[vim.cmd("Eca jobs")]])
  t.await("the end of the job", function() return not e:bar():find("1 job", 1, true) end)
end)

t.test("a subagent asks for approval, and its chat can be opened", {}, function(e)
  e:prompt("delegate"):asks("child.txt")
  t.contains(e:float(), "(asked by a subagent)")
  e:type("<Esc>gaa"):shows("Delegated.")
  t.equal(e:file("child.txt"), "c")
  e:idle()
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("Enter opens it", "b")]])
  e:type("<CR>"):shows("The child is done.")
end)

t.test("rename, fork, flag, rollback with files", {}, function(e)
  e:prompt("hello"):shows("Hello")
  e:idle()
  e:prompt("write"):asks("new.txt")
  e:type("<Esc>gaa"):shows("Written.")
  e:idle()
  t.equal(e:file("new.txt"), "one\ntwo\n")
  e:lua([[vim.cmd("Eca rename A good name")]])
  t.await("the title", function() return e:lua([[return require("eca.ui").latest.title]]) == "A good name" end)
  e:choose("^write")
  e:lua([[vim.cmd("Eca flag here")]])
  e:shows("⚑ here")
  e:choose("^write", "messages and files")
  e:lua([[vim.cmd("Eca rollback")]])
  t.await("the rollback", function() return e:file("new.txt") == nil and not e:chat():find("Written.", 1, true) end)
  local first = e:lua([[return require("eca.ui").latest.id]])
  e:choose("^hello")
  e:lua([[vim.cmd("Eca fork")]])
  t.await("the fork to be shown", function() return e:lua([[return require("eca.ui").latest.id]]) ~= first end)
end)

t.test("the list of chats: one is resumed in another Neovim, page by page", { page = 6 }, function(e)
  for _ = 1, 6 do
    e:prompt("hello"):idle()
  end
  e:prompt("write"):asks("new.txt")
  e:type("<Esc>gaa"):shows("Written.")
  e:idle()
  local other = t.editor({ page = 6 }, e)
  local ok, err = pcall(function()
    other:choose("messages")
    other:lua([[vim.cmd("Eca chats")]])
    other:shows("Written.")
    other:shows("↑ Earlier messages")
    local function count() return select(2, other:chat():gsub("❯ hello", "")) end
    for _ = 1, 5 do
      if other:chat():find("↑ Earlier", 1, true) then
        local before = other:chat()
        other:type("<Esc><C-w>kgg<CR>")
        t.await("earlier messages", function() return other:chat() ~= before end)
      end
    end
    t.equal(count(), 6)
    other:prompt("hello"):idle()
    t.equal(count(), 7)
  end)
  other:close()
  assert(ok, err)
end)

t.test("a search opens the chat at the message that was found", { page = 4 }, function(e)
  e:prompt("hello walrus"):shows("Hello, **world**.")
  e:idle()
  for _ = 1, 3 do
    e:prompt("hello"):idle()
  end
  local chat = e:lua([[return require("eca.ui").latest.id]])
  e:lua([[vim.cmd("Eca new")]])
  e:lua([[vim.cmd("Eca search seal")]])
  e:says("no message was found")
  t.await("the chat", function()
    e:choose("user: hello walrus")
    e:lua([[vim.cmd("Eca search walr* role:user")]]) -- the index may not have the message yet
    vim.wait(500)
    return e:lua([[return require("eca.ui").latest.id]]) == chat
  end)
  e:shows("↓ Later messages")
  t.equal(select(2, e:chat():gsub("❯ ", "")), 1) -- the window ends with the message
  local above = e:lua([[
    local buf = require("eca.ui").latest.view.buf
    local row = vim.api.nvim_win_get_cursor(vim.fn.bufwinid(buf))[1]
    return table.concat(vim.api.nvim_buf_get_lines(buf, row - 4, row, false), "\n")
  ]])
  t.contains(above, "❯ hello walrus") -- in view
  e:type("<Esc><C-w>k"):lua([[vim.fn.search("↓ Later", "b")]])
  e:type("<CR>")
  t.await("the newest messages", function() return not e:chat():find("↓ Later", 1, true) end)
  t.lacks(e:chat(), "walrus")
  e:choose("user: hello walrus")
  e:lua([[vim.cmd("Eca search walr* role:user")]])
  e:shows("↓ Later messages")
  e:prompt("write"):asks("new.txt") -- which belongs to the newest messages
  t.lacks(e:chat(), "↓ Later")
  e:type("<Esc>gar"):idle()
end)

t.test("two windows and two tabs: nothing lost, nothing doubled", {}, function(e)
  e:prompt("steady"):shows("step step")
  e:lua([[vim.cmd("tabnew") vim.cmd("Eca") vim.cmd("vsplit")]])
  e:shows("Steady done.")
  e:idle()
  t.equal(select(2, e:chat():gsub("step ", "")), 100)
  e:lua([[vim.cmd("Eca close") vim.cmd("Eca")]])
  e:lua([[vim.cmd("Eca new")]])
  local second = e:lua([[return require("eca.ui").latest.id]])
  e:type("ihello<CR><Esc>"):shows("Hello, **world**.")
  t.lacks(e:chat(), "Steady")
  e:lua([[vim.cmd("tabnext")]])
  t.contains(e:chat(), "Steady done.")
  e:lua([[vim.cmd("tabnext")]])
  -- A wiped buffer comes back with everything.
  e:lua([[vim.cmd("bwipeout! " .. require("eca.ui").latest.view.buf) vim.cmd("Eca")]])
  t.equal(e:lua([[return require("eca.ui").latest.id]]), second)
  e:shows("Hello, **world**.")
end)

t.test("what a model writes is shown, not acted upon", {}, function(e)
  e:prompt("hostile"):shows("a forged call")
  e:idle()
  local chat = e:chat()
  t.contains(chat, "␛[31mred␛[0m ␇␈ <202e>evil<202c> zero<200b>width")
  t.equal(e:file("pwned"), nil)
  -- Forged prompts and calls have no highlight of real ones, and are not blocks.
  local marks = e:lua([[
    local buf, ns = require("eca.ui").latest.view.buf, vim.api.nvim_create_namespace("eca")
    local out = {}
    for i, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
      if line:find("forged", 1, true) then
        table.insert(out, #vim.api.nvim_buf_get_extmarks(buf, ns, { i - 1, 0 }, { i - 1, -1 }, {}))
      end
    end
    return out
  ]])
  t.equal(marks, { 0, 0 })
  e:lua([[
    vim.api.nvim_set_current_win(vim.fn.bufwinid(require("eca.ui").latest.view.buf))
    vim.fn.search("command:run", "b")
  ]])
  e:type("gx"):says("no web address")
  t.lacks(e:said(), "opened")
  -- A title is part of a status line, where a percent sign begins an expression.
  e:lua([[vim.cmd("Eca rename %{system('touch pwned')}")]])
  t.await("the title", function() return e:lua([[return require("eca.ui").latest.title]]) ~= nil end)
  t.contains(
    e:lua([[
    vim.cmd("redrawstatus!")
    local win = vim.fn.bufwinid(require("eca.ui").latest.view.buf)
    return vim.api.nvim_eval_statusline("%{%v:lua.require'eca.ui'.bar()%}", { winid = win, use_winbar = true }).str
  ]]),
    ""
  )
  t.equal(e:file("pwned"), nil)
  e:prompt("longline"):idle()
  local longest = e:lua([[
    local most = 0
    for _, line in ipairs(vim.api.nvim_buf_get_lines(require("eca.ui").latest.view.buf, 0, -1, false)) do
      assert(not vim.fn.strtrans(line):find("<..>") or line:find("evil"), "cut within a character")
      most = math.max(most, #line)
    end
    return most
  ]])
  assert(longest <= 4000, longest)
end)

t.test("MCP servers, checkhealth", {}, function(e)
  e:prompt("hello"):idle()
  t.await("the tools of eca", function() return e:lua([[return require("eca.server").servers.ECA ~= nil]]) end)
  e:choose("^ECA")
  e:lua([[vim.cmd("Eca mcp")]])
  e:says("write_file")
  e:lua([[vim.cmd("checkhealth eca")]])
  local health = e:lua([[return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")]])
  for _, piece in ipairs({ "is eca 0", "runs (process", "2 models, the default is tape/m", "eca.log" }) do
    t.contains(health, piece)
  end
end)

t.test("a tool of an MCP server, which is stopped and started", { mcp = true }, function(e)
  local function awaits(status)
    t.await(
      "the server to be " .. status,
      function() return e:lua([[return vim.tbl_get(require("eca.server").servers, "sh", "status")]]) == status end
    )
  end
  e:lua([[vim.cmd("Eca")]])
  awaits("running")
  e:prompt("consult"):asks("sh")
  e:type("<Esc>gaa"):shows("Consulted: from afar.")
  e:idle()
  e:choose("^sh", "stop")
  e:lua([[vim.cmd("Eca mcp")]])
  awaits("stopped")
  e:choose("^sh", "start")
  e:lua([[vim.cmd("Eca mcp")]])
  awaits("running")
end)

t.test("definitions and references of a language server", {}, function(e)
  e:lua([[
    local function at(line)
      local range = { start = { line = line, character = 0 }, ["end"] = { line = line, character = 5 } }
      return { uri = vim.uri_from_fname(vim.uv.cwd() .. "/old.txt"), range = range }
    end
    local answers = {
      initialize = { capabilities = { definitionProvider = true, referencesProvider = true } },
      ["textDocument/definition"] = at(0),
      ["textDocument/references"] = { at(1), at(2) },
    }
    vim.cmd.edit("old.txt")
    vim.lsp.start({ name = "test", root_dir = vim.uv.cwd(), cmd = function()
      return {
        request = function(method, _, done) done(nil, answers[method]) return true, 1 end,
        notify = function() end,
        is_closing = function() return false end,
        terminate = function() end,
      }
    end })
  ]])
  e:prompt("define"):shows("Defined: old.txt:1.")
  e:idle()
  e:prompt("refer"):shows("Referred: old.txt:3.")
end)

t.test("login: providers are listed, a key is asked for", {}, function(e)
  e:prompt("hello"):idle()
  e:lua([[vim.fn.inputsecret = function(prompt) table.insert(said, prompt) return "" end]])
  e:choose("[Aa]nthropic", "[Kk]ey")
  e:lua([[vim.cmd("Eca login")]])
  e:says("the login was cancelled")
end)

t.test("a chat of 50 MB: what is added costs the same at its end as at its beginning", {}, function(e)
  e:lua([[vim.cmd("Eca")]])
  local got = e:lua([[
    local chat = require("eca.ui").latest
    local piece = string.rep(string.rep("some words of an answer, ", 40) .. "\n", 10)
    local function feed(n)
      local began = vim.uv.hrtime()
      for _ = 1, n do
        chat.view:stream(piece)
        chat.view:flush()
      end
      vim.cmd.redraw()
      return (vim.uv.hrtime() - began) / 1e6 / n
    end
    local early = feed(200)
    feed(4800)
    return { bytes = chat.view.bytes, early = early, late = feed(200) }
  ]])
  assert(got.bytes > 50e6, got.bytes)
  assert(got.late < math.max(20, got.early * 20), vim.inspect(got))
end)

t.test("a flood of an answer does not keep the user from typing", {}, function(e)
  e:prompt("flood"):shows("word and another")
  local slowest = 0
  for _ = 1, 30 do
    local began = vim.uv.hrtime()
    e:type("ix<Esc>"):lua("return 1")
    slowest = math.max(slowest, (vim.uv.hrtime() - began) / 1e6)
  end
  assert(slowest < 10000, slowest)
  e:idle()
  t.equal(select(2, e:chat():gsub("word and another", "")), 20000)
end)
