#include "executor/management/show_cluster.h"

#include <string>

#include "elastic/fleet/forecast.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/result_rows.h"

namespace sluice::executor {
namespace {

std::string StateOf(const elastic::NodeUse& node) {
  if (node.suspect) {
    return node.cordoned ? "suspect, cordoned" : "suspect";
  }
  return node.cordoned ? "cordoned" : "ready";
}

int64_t Mebibytes(const elastic::Capacity& capacity) {
  return capacity.memory_bytes >> 20;
}

}  // namespace

Schema ClusterColumns() {
  const auto processors = [](const char* name) {
    return ColumnInfo{name, DataType::kDouble, "double precision"};
  };
  const auto whole = [](const char* name) { return ColumnInfo{name, DataType::kInt64, "bigint"}; };
  return Schema{{{"node", DataType::kText, "text"},
                 {"state", DataType::kText, "text"},
                 processors("cpu"),
                 processors("services_cpu"),
                 processors("jobs_cpu"),
                 processors("free_cpu"),
                 whole("memory_mib"),
                 whole("services_mib"),
                 whole("jobs_mib"),
                 whole("free_mib"),
                 whole("processes")}};
}

Status ShowCluster(Context& context, ResultSink& sink) {
  if (context.cluster == nullptr) {
    return FailedPrecondition("this session cannot start processes, and has no cluster");
  }
  ASSIGN_OR_RETURN(const elastic::ClusterState state, context.cluster->State(context.stop));
  ResultRows rows(ClusterColumns());
  for (const elastic::NodeUse& node : elastic::UseOfNodes(state)) {
    rows.Add({node.node, StateOf(node), node.capacity.cpu, node.services.cpu, node.jobs.cpu,
              node.free.cpu, Mebibytes(node.capacity), Mebibytes(node.services),
              Mebibytes(node.jobs), Mebibytes(node.free), int64_t{node.processes}});
  }
  return rows.SendTo(sink);
}

}  // namespace sluice::executor
