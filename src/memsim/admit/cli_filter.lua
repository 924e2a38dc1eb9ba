-- SPDX-License-Identifier: Apache-2.0
-- Slurm's cli_filter: sbatch predicts a job before it submits it, as `memsim
-- admit' does. In slurm.conf: CliFilterPlugins=lua; this file beside it, as
-- cli_filter.lua. It runs as the user, on the machine where sbatch runs. If
-- memsim is missing or fails, the job is submitted as it is.

-- The site's: where memsim is, and options of memsim admit, as in
-- "--policy annotate --database /shared/outcomes.sqlite".
local MEMSIM = os.getenv("MEMSIM_ADMIT_PROGRAM") or "memsim"
local OPTIONS = os.getenv("MEMSIM_ADMIT_OPTIONS") or ""

local number -- of the prediction

local function quote(word)
    return "'" .. string.gsub(word, "'", "'\\''") .. "'"
end

local function admit(words)
    return io.popen(quote(MEMSIM) .. " admit " .. OPTIONS .. " " .. words)
end

-- What sbatch was told, in a file that only the user can read.
local function write_options(options)
    local path = os.tmpname()
    local file = io.open(path, "w")
    if not file then
        return nil
    end
    file:write(slurm.json_cli_options(options))
    file:close()
    return path
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    number = nil
    if options["type"] ~= "sbatch" or offset > 0 or
        os.getenv("MEMSIM_ADMITTED") then
        return slurm.SUCCESS
    end
    local path = write_options(options)
    if not path then
        return slurm.SUCCESS
    end
    local answer = admit("--filter " .. quote(path))
    local verdict, made, comment = answer:read(), answer:read(), answer:read()
    answer:close()
    os.remove(path)
    if verdict == "refuse" then
        slurm.log_error("memsim: the job is predicted not to fit")
        return slurm.ERROR
    end
    if verdict == "submit" then
        number = made
        options["comment"] = comment
    end
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    if number and number ~= "" then
        admit("--submitted " .. number .. "=" .. job):close()
        number = nil
    end
    return slurm.SUCCESS
end
