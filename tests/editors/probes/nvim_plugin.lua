-- Run by nvim.lua within its own run: the commands of the plugin editors/nvim.
local probe = _G.funes_probe

local function lines_of(name)
  return probe.wait_for(function()
    local buffer = vim.fn.bufnr(name)
    local lines = buffer > 0 and vim.api.nvim_buf_get_lines(buffer, 0, -1, false) or {}
    return #table.concat(lines) > 0 and not vim.startswith(lines[1], "Looking") and lines
  end)
end

-- Every way in which a list changes is seen here, so that streaming can be told from waiting.
local changes = 0
local set_lines = vim.api.nvim_buf_set_lines
vim.api.nvim_buf_set_lines = function(buffer, ...)
  if vim.api.nvim_buf_get_name(buffer):find("funes%-list:") then
    changes = changes + 1
  end
  return set_lines(buffer, ...)
end

probe.step("command_recall", function()
  changes = 0
  vim.cmd("FunesRecall " .. vim.env.FUNES_PROBE_QUERY)
  lines_of("funes-list:" .. vim.env.FUNES_PROBE_QUERY)
  -- The words' answer first, then the whole one.
  probe.wait_for(function()
    return changes >= 2
  end)
  local lines = lines_of("funes-list:" .. vim.env.FUNES_PROBE_QUERY)
  return { lines = lines, streamed = changes - 1, modifiable = vim.bo.modifiable }
end)
vim.api.nvim_buf_set_lines = set_lines

probe.step("command_open", function()
  vim.fn.cursor(1, 1)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
  probe.wait_for(function()
    return vim.api.nvim_buf_get_name(0):find("funes:/", 1, true)
      and #table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)) > 0
  end)
  return {
    name = vim.api.nvim_buf_get_name(0),
    lines = vim.api.nvim_buf_get_lines(0, 0, 20, false),
  }
end)

probe.step("command_why", function()
  probe.to_word(vim.env.FUNES_PROBE_KNOWN)
  vim.cmd("FunesWhy")
  probe.wait_for(function()
    return vim.api.nvim_buf_get_name(0):find("funes:/why/", 1, true)
      and #table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)) > 0
  end)
  return {
    name = vim.api.nvim_buf_get_name(0),
    lines = vim.api.nvim_buf_get_lines(0, 0, 60, false),
  }
end)

local function lens_titles(buffer)
  local titles = {}
  for _, lens in ipairs(vim.lsp.codelens.get(buffer)) do
    table.insert(titles, lens.command and lens.command.title or "")
  end
  return titles
end

probe.step("command_lens", function()
  probe.to_word(vim.env.FUNES_PROBE_KNOWN)
  vim.cmd("FunesLens symbols")
  local buffer = vim.api.nvim_get_current_buf()
  return probe.wait_for(function()
    local titles = lens_titles(buffer)
    return #titles == 2 and not vim.tbl_contains(titles, "") and titles
  end)
end)

probe.step("command_lens_off", function()
  vim.cmd("FunesLens")
  local buffer = vim.api.nvim_get_current_buf()
  probe.wait_for(function()
    return #lens_titles(buffer) == 0
  end)
  return #lens_titles(buffer)
end)

probe.step("command_sessions", function()
  vim.cmd("FunesSessions")
  return lines_of("funes-list:sessions ")
end)

probe.step("command_sessions_titled", function()
  vim.cmd("FunesSessions " .. vim.env.FUNES_PROBE_TITLE)
  return lines_of("funes-list:sessions " .. vim.env.FUNES_PROBE_TITLE)
end)
