#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "models/checksum_internal.h"
#include "models/model.h"

// The stored form, little-endian:
//   "SLWT" version:u32
//   tensors:u64  { values:u64  float32 x values }
//   tables:u64   { rows:u64 values:u64  int64 x rows  float32 x values }
//   checksum:u64 (of all before)
namespace sluice::models {
namespace {

static_assert(std::endian::native == std::endian::little, "weights are stored little-endian");

constexpr std::string_view kMagic = "SLWT";
constexpr uint32_t kVersion = 1;

template <typename T>
void AppendValue(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}
template <typename T>
void AppendArray(const std::vector<T>& values, std::string* out) {
  out->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Reads forward and never past the end, whatever the counts are.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  bool Value(T* value) {
    if (rest_.size() < sizeof(T)) {
      return false;
    }
    std::memcpy(value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return true;
  }
  template <typename T>
  bool Array(uint64_t count, std::vector<T>* values) {
    if (count > rest_.size() / sizeof(T)) {
      return false;
    }
    values->resize(count);
    if (count > 0) {
      std::memcpy(values->data(), rest_.data(), count * sizeof(T));
    }
    rest_.remove_prefix(count * sizeof(T));
    return true;
  }
  size_t remaining() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

Status Damaged(std::string_view what) {
  return InvalidArgument(fmt::format("the stored weights are damaged: {}", what))
      .Hint("train the model again, or roll back to an older version");
}

// Limits a count of records: even an empty record has its own counts.
constexpr size_t kMinTensor = sizeof(uint64_t);
constexpr size_t kMinTable = 2 * sizeof(uint64_t);

bool ReadTensors(Reader* reader, NetworkWeights* weights) {
  uint64_t tensors = 0;
  if (!reader->Value(&tensors) || tensors > reader->remaining() / kMinTensor) {
    return false;
  }
  weights->dense.resize(tensors);
  for (std::vector<float>& tensor : weights->dense) {
    uint64_t size = 0;
    if (!reader->Value(&size) || !reader->Array(size, &tensor)) {
      return false;
    }
  }
  return true;
}

bool ReadTables(Reader* reader, NetworkWeights* weights) {
  uint64_t tables = 0;
  if (!reader->Value(&tables) || tables > reader->remaining() / kMinTable) {
    return false;
  }
  weights->tables.resize(tables);
  for (NetworkWeights::Table& table : weights->tables) {
    uint64_t rows = 0;
    uint64_t values = 0;
    if (!reader->Value(&rows) || !reader->Value(&values) || !reader->Array(rows, &table.ids) ||
        !reader->Array(values, &table.values)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string SaveWeights(const NetworkWeights& weights) {
  size_t bytes = 64;
  for (const std::vector<float>& tensor : weights.dense) {
    bytes += 8 + tensor.size() * sizeof(float);
  }
  for (const NetworkWeights::Table& table : weights.tables) {
    bytes += 16 + table.ids.size() * sizeof(int64_t) + table.values.size() * sizeof(float);
  }
  std::string out;
  out.reserve(bytes);
  out += kMagic;
  AppendValue(kVersion, &out);
  AppendValue(uint64_t{weights.dense.size()}, &out);
  for (const std::vector<float>& tensor : weights.dense) {
    AppendValue(uint64_t{tensor.size()}, &out);
    AppendArray(tensor, &out);
  }
  AppendValue(uint64_t{weights.tables.size()}, &out);
  for (const NetworkWeights::Table& table : weights.tables) {
    AppendValue(uint64_t{table.ids.size()}, &out);
    AppendValue(uint64_t{table.values.size()}, &out);
    AppendArray(table.ids, &out);
    AppendArray(table.values, &out);
  }
  AppendValue(ChecksumOf(out), &out);
  return out;
}

Result<NetworkWeights> LoadWeights(std::string_view bytes) {
  if (bytes.size() < kMagic.size() || bytes.substr(0, kMagic.size()) != kMagic) {
    return Damaged("they do not begin as weights of a network do");
  }
  if (bytes.size() < kMagic.size() + sizeof(uint32_t) + sizeof(uint64_t)) {
    return Damaged("they end early");
  }
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + body.size(), sizeof(checksum));
  Reader reader(body.substr(kMagic.size()));
  uint32_t version = 0;
  reader.Value(&version);
  if (version != kVersion) {
    return InvalidArgument(fmt::format(
        "the weights are stored in form {}, this program reads form {}", version, kVersion));
  }
  if (checksum != ChecksumOf(body)) {
    return Damaged("the checksum is another one");
  }
  NetworkWeights weights;
  if (!ReadTensors(&reader, &weights) || !ReadTables(&reader, &weights)) {
    return Damaged("they end early");
  }
  if (reader.remaining() != 0) {
    return Damaged(fmt::format("{} bytes too many", reader.remaining()));
  }
  return weights;
}

Status CheckShape(const NetworkWeights& weights, const Network& network) {
  if (weights.dense.size() != network.dense().size() ||
      weights.tables.size() != network.tables().size()) {
    return InvalidArgument(
        fmt::format("the weights have {} tensors and {} tables, the network has {} and {}",
                    weights.dense.size(), weights.tables.size(), network.dense().size(),
                    network.tables().size()));
  }
  for (size_t i = 0; i < weights.dense.size(); ++i) {
    const DenseTensor& tensor = network.dense()[i];
    if (weights.dense[i].size() != tensor.size()) {
      return InvalidArgument(fmt::format("tensor {} has {} weights, the network needs {}",
                                         tensor.name, weights.dense[i].size(), tensor.size()));
    }
  }
  for (size_t t = 0; t < weights.tables.size(); ++t) {
    const EmbeddingTable& table = network.tables()[t];
    const std::vector<int64_t>& ids = weights.tables[t].ids;
    if (weights.tables[t].values.size() != ids.size() * table.dimension) {
      return InvalidArgument(fmt::format("table {} has {} weights for {} rows of {}", table.name,
                                         weights.tables[t].values.size(), ids.size(),
                                         table.dimension));
    }
    const auto unordered = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>());
    if (unordered != ids.end()) {
      return InvalidArgument(
          fmt::format("the row ids of table {} are not ascending at {}", table.name, *unordered));
    }
    if (!ids.empty() && (ids.front() < 0 || ids.back() >= table.rows)) {
      return InvalidArgument(fmt::format("table {} has rows {} to {}, the weights {} to {}",
                                         table.name, 0, table.rows - 1, ids.front(), ids.back()));
    }
  }
  return OkStatus();
}

}  // namespace sluice::models
