#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <utility>
#include <vector>

#include "elastic/job/training_job.h"
#include "executor/jobs/progress.pb.h"

namespace sluice::executor {

ProgressProto ToProto(const elastic::Progress& progress);
elastic::Progress FromProto(const ProgressProto& proto);

void WriteMetrics(const std::vector<std::pair<std::string, double>>& metrics,
                  google::protobuf::RepeatedPtrField<MetricValue>* to);
std::vector<std::pair<std::string, double>> ReadMetrics(
    const google::protobuf::RepeatedPtrField<MetricValue>& from);

}  // namespace sluice::executor
