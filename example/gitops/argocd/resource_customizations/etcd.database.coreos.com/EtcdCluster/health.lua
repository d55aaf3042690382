-- The conditions Ready and Stalled follow kstatus. Their reasons Paused and Suspended mean
-- that a person has stopped the operator.
local hs = { status = "Progressing", message = "The operator has not seen the last edit" }

local status = obj.status
if status == nil or status.observedGeneration == nil or status.observedGeneration ~= obj.metadata.generation then
  return hs
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local ready = conditions["Ready"]
if ready == nil then
  return hs
end
hs.message = ready.message

local stalled = conditions["Stalled"]
local available = conditions["Available"]
if ready.reason == "Paused" or ready.reason == "Suspended" then
  hs.status = "Suspended"
elseif stalled ~= nil and stalled.status == "True" then
  hs.status = "Degraded"
elseif available ~= nil and available.status == "False" and status.phase == "Running" then
  -- An EtcdCluster that has served and does not serve now.
  hs.status = "Degraded"
elseif ready.status == "True" then
  hs.status = "Healthy"
end
return hs
