-- Refuses at submission what the site's queues do not allow: accounts and QoS, which Slurm itself knows
-- only with its accounting, and bins, which it knows never. The tables in front of this text are written from cluster.toml.

local UNSET = {[4294967294] = true, [4294967295] = true, [65534] = true, [65535] = true}

local function given(value)
  if value == nil or value == "" or UNSET[value] then return nil end
  return value
end

local function refuse(message)
  slurm.log_user(message)
  return slurm.ERROR
end

-- In Slurm's own words, which it has for its accounting: the limit, then the policy.
local function violates(limit)
  slurm.log_user(limit)
  return slurm.ESLURM_ACCOUNTING_POLICY or refuse("job submit limit")
end

local function counted(text)
  return tonumber(string.match(given(text) or "", "gpu[^,]*:(%d+)")) or 0
end

-- --gpus-per-node and --gres, or --gpus of the whole job
local function gpus_of(job, nodes)
  local each = counted(given(job.tres_per_node) or job.gres)
  return each > 0 and each * nodes or counted(job.tres_per_job)
end

local function running(uid, queue)
  local count = 0
  for _, job in pairs(slurm.jobs) do
    local over = job.job_state ~= nil and job.job_state % 256 > 2
    local same = job.user_id == uid and job.partition == queue.partition
    if same and not over and (queue.qos == "" or job.admin_comment == "qos:" .. queue.qos) then
      count = count + 1
    end
  end
  return count
end

-- Why this queue does not take the job; nil when it does.
local function objection(queue, job, uid)
  local nodes = given(job.min_nodes) or 1
  local minutes = given(job.time_limit) or queue.max_minutes or 1
  local gpus = gpus_of(job, nodes)
  if queue.max_nodes and nodes > queue.max_nodes then return "node count exceeds the limit of " .. queue.name end
  if queue.min_nodes and nodes < queue.min_nodes then return "node count is below the limit of " .. queue.name end
  if queue.max_minutes and minutes > queue.max_minutes then return "time limit exceeds that of " .. queue.name end
  if queue.max_gpus and gpus > queue.max_gpus then return "more GPUs than " .. queue.name .. " allows" end
  if queue.jobs_per_user and running(uid, queue) >= queue.jobs_per_user then
    return "QOSMaxSubmitJobPerUserLimit"
  end
  return nil
end

function slurm_job_submit(job, partitions, uid)
  if uid == 0 then return slurm.SUCCESS end  -- the site itself
  local asked = given(job.account)
  if account_required and not asked then return refuse("Invalid account: none was given") end
  if asked and not accounting and not accounts[string.lower(asked)] then
    return refuse(wrong_account)
  end
  if gpus_required and gpus_of(job, 1) == 0 then return refuse("a request for GPUs is mandatory here") end
  if refuses_mem_0 and job.pn_min_memory == 0 then return refuse("--mem=0 is not allowed here") end
  local partition = given(job.partition) or default_partition
  local qos = given(job.qos) or ""
  local reason = nil
  for _, queue in ipairs(queues) do
    if queue.partition == partition and queue.qos == qos then
      local why = objection(queue, job, uid)
      if not why then
        if qos ~= "" then job.admin_comment = "qos:" .. qos end
        return slurm.SUCCESS
      end
      reason = reason or why
    end
  end
  if reason == "QOSMaxSubmitJobPerUserLimit" then return violates(reason) end
  if reason then return refuse(reason) end
  if qos ~= "" and not accounting then return refuse("Invalid qos specification") end
  return slurm.SUCCESS  -- an unknown partition is Slurm's own to refuse
end

function slurm_job_modify()
  return slurm.SUCCESS
end

return slurm.SUCCESS
