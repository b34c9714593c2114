#include <algorithm>

#include "elastic/worker/lane_group_internal.h"

namespace sluice::elastic {

LaneGroup::LaneGroup(models::Network& network) : network_(&network) {
  for (const models::DenseTensor& tensor : network.dense()) {
    dense_bytes_ += tensor.size() * sizeof(float);
  }
}

void LaneGroup::Add(const Lease& lease, BatchIndex batch) {
  if (count_ == lanes_.size()) {
    lanes_.push_back(std::make_unique<Lane>());
  }
  bytes_ = count_ == 0 ? 0 : bytes_;
  Lane& lane = *lanes_[count_++];
  lane.task = lease.task.id;
  lane.identity = lease.Identity(batch);
  lease.Gather(batch, &lane.batch);
  network_->CollectIds(lane.batch, &lane.view);
  bytes_ += dense_bytes_;
  for (size_t t = 0; t < lane.view.tables.size(); ++t) {
    bytes_ += lane.view.tables[t].ids.size() *
              (sizeof(int64_t) + network_->tables()[t].dimension * sizeof(float));
  }
}

bool LaneGroup::Holds(TaskId task) const {
  return std::any_of(lanes_.begin(), lanes_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [task](const auto& lane) { return lane->task == task; });
}

models::ParameterView* LaneGroup::CombinedView() {
  if (count_ == 1) {
    return &lanes_[0]->view;
  }
  combined_.tables.resize(network_->tables().size());
  for (size_t t = 0; t < combined_.tables.size(); ++t) {
    std::vector<int64_t>& ids = combined_.tables[t].ids;
    ids.clear();
    for (size_t i = 0; i < count_; ++i) {
      const std::vector<int64_t>& own = lanes_[i]->view.tables[t].ids;
      ids.insert(ids.end(), own.begin(), own.end());
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  return &combined_;
}

void LaneGroup::Scatter() {
  if (count_ == 1) {
    return;
  }
  for (size_t i = 0; i < count_; ++i) {
    models::ParameterView& view = lanes_[i]->view;
    view.dense = combined_.dense;
    for (size_t t = 0; t < view.tables.size(); ++t) {
      const size_t dimension = network_->tables()[t].dimension;
      const models::RowSet& all = combined_.tables[t];
      models::RowSet& own = view.tables[t];
      own.values.resize(own.ids.size() * dimension);
      float* to = own.values.data();
      for (const int64_t id : own.ids) {
        const auto place = std::lower_bound(all.ids.begin(), all.ids.end(), id) - all.ids.begin();
        to = std::copy_n(all.values.data() + static_cast<size_t>(place) * dimension, dimension, to);
      }
    }
  }
}

std::vector<BatchPush> LaneGroup::Pushes() const {
  std::vector<BatchPush> pushes;
  for (size_t i = 0; i < count_; ++i) {
    const Lane& lane = *lanes_[i];
    pushes.push_back({lane.identity, lane.loss.weight, &lane.view, &lane.gradient});
  }
  return pushes;
}

}  // namespace sluice::elastic
