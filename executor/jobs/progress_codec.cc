#include "executor/jobs/progress_codec_internal.h"

namespace sluice::executor {

void WriteMetrics(const std::vector<std::pair<std::string, double>>& metrics,
                  google::protobuf::RepeatedPtrField<MetricValue>* to) {
  for (const auto& [name, value] : metrics) {
    MetricValue* metric = to->Add();
    metric->set_name(name);
    metric->set_value(value);
  }
}

std::vector<std::pair<std::string, double>> ReadMetrics(
    const google::protobuf::RepeatedPtrField<MetricValue>& from) {
  std::vector<std::pair<std::string, double>> metrics;
  for (const MetricValue& metric : from) {
    metrics.emplace_back(metric.name(), metric.value());
  }
  return metrics;
}

ProgressProto ToProto(const elastic::Progress& progress) {
  ProgressProto proto;
  proto.set_rows_done(progress.rows_done);
  proto.set_rows_read(progress.rows_read);
  proto.set_rows_total(progress.rows_total);
  proto.set_rows_per_second(progress.rows_per_second);
  proto.set_epoch(progress.epoch.value());
  proto.set_epochs(progress.epochs);
  proto.set_loss(progress.loss);
  WriteMetrics(progress.metrics, proto.mutable_metrics());
  proto.set_workers(progress.workers);
  proto.set_seconds_left(progress.seconds_left);
  return proto;
}

elastic::Progress FromProto(const ProgressProto& proto) {
  elastic::Progress progress;
  progress.rows_done = proto.rows_done();
  progress.rows_read = proto.rows_read();
  progress.rows_total = proto.rows_total();
  progress.rows_per_second = proto.rows_per_second();
  progress.epoch = elastic::Epoch(proto.epoch());
  progress.epochs = proto.epochs();
  progress.loss = proto.loss();
  progress.metrics = ReadMetrics(proto.metrics());
  progress.workers = proto.workers();
  progress.seconds_left = proto.seconds_left();
  return progress;
}

}  // namespace sluice::executor
