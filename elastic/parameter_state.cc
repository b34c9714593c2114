#include <fmt/core.h>

#include <cstring>

#include "elastic/parameter_tensor_internal.h"

// How a replica's parameters reach a worker that joins: numbers as they are in memory, since every
// process is the same binary.
namespace sluice::elastic {
namespace {

template <typename Number>
void Put(std::span<const Number> numbers, std::string* out) {
  out->append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}
void PutSize(size_t size, std::string* out) {
  const uint64_t number = size;
  Put(std::span(&number, 1), out);
}

Status TooShort() {
  return Internal("the state of the parameters is cut off");
}

template <typename Number>
Status Get(std::string_view* in, std::span<Number> numbers) {
  if (in->size() < numbers.size_bytes()) {
    return TooShort();
  }
  std::memcpy(numbers.data(), in->data(), numbers.size_bytes());
  in->remove_prefix(numbers.size_bytes());
  return Status();
}
Result<size_t> GetSize(std::string_view* in) {
  uint64_t number = 0;
  RETURN_IF_ERROR(Get(in, std::span(&number, 1)));
  return static_cast<size_t>(number);
}

}  // namespace

void EmbeddingSlab::SaveState(std::string* out) const {
  PutSize(ids_.size(), out);
  Put(std::span(ids_), out);
  Put(std::span(updates_), out);
  for (uint32_t row = 0; row < ids_.size(); ++row) {
    Put(std::span<const float>(Row(row), stride_), out);
  }
}

Status EmbeddingSlab::LoadState(std::string_view* in) {
  ASSIGN_OR_RETURN(const size_t rows, GetSize(in));
  if (in->size() / sizeof(int64_t) < rows) {
    return TooShort();
  }
  std::vector<int64_t> ids(rows);
  std::vector<uint32_t> updates(rows);
  RETURN_IF_ERROR(Get(in, std::span(ids)));
  RETURN_IF_ERROR(Get(in, std::span(updates)));
  blocks_.clear();
  ids_.clear();
  updates_.clear();
  index_.assign(index_.size(), kEmpty);
  for (size_t i = 0; i < rows; ++i) {
    const uint32_t row = FindOrCreate(ids[i]);
    updates_[row] = updates[i];
    RETURN_IF_ERROR(Get(in, std::span(Row(row), stride_)));
  }
  return Status();
}

Status ParameterShard::ApplyStep(const PushRequest& sum) {
  RETURN_IF_ERROR(CheckShape(sum));
  const MutexLock lock(mutex_);
  Apply(sum.dense, sum.tables, 1.0F);
  return Status();
}

std::string ParameterShard::SaveState() const {
  const MutexLock lock(mutex_);
  std::string out;
  Put(std::span(&version_, 1), &out);
  for (const Tensor& tensor : tensors_) {
    PutSize(tensor.values.size(), &out);
    Put(std::span(tensor.values), &out);
  }
  for (const EmbeddingSlab& slab : slabs_) {
    slab.SaveState(&out);
  }
  const std::string best = best_ != nullptr ? models::SaveWeights(*best_) : "";
  PutSize(best.size(), &out);
  return out + best;
}

Status ParameterShard::LoadState(std::string_view state) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(Get(&state, std::span(&version_, 1)));
  for (Tensor& tensor : tensors_) {
    ASSIGN_OR_RETURN(const size_t size, GetSize(&state));
    if (size != tensor.values.size()) {
      return Internal(fmt::format("the state has {} numbers for '{}'; the model has {}", size,
                                  tensor.name, tensor.values.size()));
    }
    RETURN_IF_ERROR(Get(&state, std::span(tensor.values)));
  }
  for (EmbeddingSlab& slab : slabs_) {
    RETURN_IF_ERROR(slab.LoadState(&state));
  }
  ASSIGN_OR_RETURN(const size_t best, GetSize(&state));
  if (best != state.size()) {
    return TooShort();
  }
  best_.reset();
  if (best > 0) {
    ASSIGN_OR_RETURN(models::NetworkWeights weights, models::LoadWeights(std::string(state)));
    best_ = std::make_unique<models::NetworkWeights>(std::move(weights));
  }
  return Status();
}

}  // namespace sluice::elastic
