#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

// Initial values of one parameter, with random access: they depend only on (seed, name, place), not
// on the order or time of requests, or the number of servers. The same bits on all machines of one
// architecture. Normal values lie within 6.7 standard deviations. Thread-safe: no state besides its
// key.
class Initializer {
 public:
  // `initializer`: a name with its parameter ("uniform:0.25"); empty: normal with `stddev`. fan_in
  // and fan_out are for glorot and he.
  struct Shape {
    double fan_in = 1;
    double fan_out = 1;
    double stddev = 0;
  };
  Initializer(std::string_view name, uint64_t seed, std::string_view initializer,
              const Shape& shape);

  // The values at the places [2 x first_pair, 2 x first_pair + values.size()).
  void Fill(uint64_t first_pair, std::span<float> values) const;
  // The same for each row: `size` values to rows[i], starting at places firsts[i]. Much faster than
  // row by row.
  void Fill(std::span<const uint64_t> firsts, size_t size, float* const* rows) const;

 private:
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind_ = Kind::kNormal;
  float value_ = 0;  // the constant, the limit, the standard deviation
  uint64_t key_ = 0;
};

// Checks that Initializer knows the name, which may have a parameter. `of` is for the message.
Status CheckInitializer(std::string_view name, std::string_view of);

// Fills the whole tensor.
void InitializeDense(const DenseTensor& tensor, uint64_t seed, std::span<float> values);

// Initial values of the rows of one table.
class RowInitializer {
 public:
  RowInitializer(const EmbeddingTable& table, uint64_t seed);
  // Writes the values (table's dimension each) to rows[0, ids.size()).
  void Fill(std::span<const int64_t> ids, float* const* rows) const;
  void Fill(int64_t id, std::span<float> values) const {
    float* const row = values.data();
    Fill(std::span(&id, 1), &row);
  }

 private:
  Initializer values_;
  size_t dimension_ = 0;
  uint64_t pairs_ = 0;  // pairs of places per row; no two rows share any
};

}  // namespace sluice::models
