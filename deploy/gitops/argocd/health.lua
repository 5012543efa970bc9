-- Copyright The Freehold Authors.
-- SPDX-License-Identifier: Apache-2.0
--
-- How Argo CD judges an MCPServer, and the objects that MCPServers refer to. It agrees with kstatus, by which Flux and Helm judge, and tells
-- besides that an MCPServer is stopped.

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "It is being deleted"}
end
local status = obj.status
if status == nil or status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Freehold has not seen this generation yet"}
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end
local reconciling, stalled, ready = conditions.Reconciling, conditions.Stalled, conditions.Ready
if reconciling ~= nil and reconciling.status == "True" then
  return {status = "Progressing", message = reconciling.message}
end
if stalled ~= nil and stalled.status == "True" then
  return {status = "Degraded", message = stalled.message}
end
if status.phase == "Stopped" then
  return {status = "Suspended", message = "It is to have no pods"}
end
if ready ~= nil and ready.status ~= "True" then
  return {status = "Progressing", message = ready.message}
end
return {status = "Healthy", message = ready ~= nil and ready.message or ""}
