-- :checkhealth eca
local M = {}

function M.check()
  local health = vim.health
  local config, server = require("eca.config"), require("eca.server")
  health.start("eca: Neovim")
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim is older than 0.10", "Install a newer one: https://neovim.io")
  end
  if pcall(vim.treesitter.language.inspect, "markdown") then
    health.ok("the parser for Markdown is there")
  else
    health.warn("the parser for Markdown is missing: chats have no highlighting", "Use a Neovim that comes with it")
  end

  health.start("eca: the program")
  local version, reason, done
  server.check_program(function(found, why)
    version, reason, done = found, why, true
  end)
  vim.wait(12000, function() return done end, 20)
  local cmd = table.concat(config.options.cmd, " ")
  if not version then
    health.error(reason or (cmd .. " did not answer"))
    return
  end
  health.ok(("%s is eca %s (%s)"):format(cmd, version, vim.fn.exepath(config.options.cmd[1])))
  local doctor = vim.list_extend(vim.list_extend({}, config.options.cmd), { "doctor", "--offline" })
  local out = vim.system(doctor, { text = true, timeout = 20000, env = config.options.env }):wait()
  local said = require("eca.text").clean(out.stdout or "")
  if said ~= "" then
    local report = out.code == 0 and health.info or health.warn
    report("eca doctor --offline:\n" .. said)
  end

  health.start("eca: the daemon")
  if server.state == "running" then
    health.ok(("runs (process %d) for %s"):format(server.client.pid, table.concat(server.folders, ", ")))
    local models = server.session.models or {}
    if #models == 0 then
      health.warn("no model can be used", "Log in to a provider: :Eca login")
    else
      health.ok(("%d models, the default is %s"):format(#models, tostring(server.session.model)))
    end
    for name, one in pairs(server.servers) do
      local report = one.status == "failed" and health.warn or health.info
      report(("MCP server %s: %s%s"):format(name, tostring(one.status), one.error and (": " .. one.error) or ""))
    end
  elseif server.problem then
    health.error(server.problem)
  else
    health.info("not started yet; :Eca starts it")
  end
  health.info("log: " .. server.log_path)
end

return M
