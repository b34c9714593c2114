#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/model.h"

// The parts of a Network. Only network*.cc and graph_network.cc include this.
namespace sluice::models {

class ModelSpec;

enum class Combiner { kSum, kMean, kSqrtn };
enum class Activation { kRelu, kTanh, kSigmoid, kElu, kLeakyRelu, kSelu, kGelu };

// One feature's share of a table: its id i is the table's row offset + i.
struct SlotUse {
  size_t slot = 0;  // index in FeatureBatch::slots
  int64_t offset = 0;
  uint32_t buckets = 0;
  Combiner combiner = Combiner::kSum;
  size_t column = 0;  // embeddings: its first column in the network's input
};

struct TableUse {
  enum class Kind {
    kWide,       // a weight per output
    kEmbedding,  // a part of the first layer's input
    kIndicator,  // rows of the first layer's weights: a multi-hot input that is never materialised
  };
  Kind kind = Kind::kWide;
  std::vector<SlotUse> slots;
};

// A run of adjacent columns of FeatureBatch::dense, and their destination.
struct DenseRun {
  size_t from = 0;
  size_t to = 0;
  size_t width = 0;
};

struct DenseInput {
  std::vector<DenseRun> runs;
  size_t width = 0;
};

// The structure that a ModelSpec determines: sizes, places and names.
struct NetworkShape {
  bool wide = false;
  bool deep = false;
  DenseInput wide_dense;
  DenseInput deep_dense;       // follows the embeddings in the first layer's input
  size_t embedding_width = 0;  // all embeddings of a row side by side
  std::vector<size_t> hidden_units;
  Activation activation = Activation::kRelu;
  float dropout = 0;
  float input_bound = 0;  // ModelSpec.input_bound

  std::vector<DenseTensor> dense;
  std::vector<EmbeddingTable> tables;
  std::vector<TableUse> uses;  // one per table

  size_t input_width() const { return embedding_width + deep_dense.width; }
};

Result<NetworkShape> ShapeOf(const ModelSpec& spec, const FeatureTransform& transform,
                             size_t outputs);

// Checks that Initializer knows the name. `of` is for the message.
Status CheckInitializer(std::string_view name, std::string_view of);

// Numbers the distinct ids of a batch, in order of first occurrence.
class IdNumbering {
 public:
  // `stamps`: the largest number of stamps it may use, 8 bytes each.
  IdNumbering(int64_t rows, int64_t stamps);
  int64_t stamps() const { return by_stamp_ ? rows_ : 0; }
  // Forgets all ids; reserves room for this many until the next Start.
  void Start(size_t occurrences);
  // Appends to `ids` those that were not seen since Start.
  void Number(const std::vector<uint32_t>& slot_ids, const SlotUse& use, std::vector<int64_t>* ids,
              uint32_t* positions);

 private:
  void NumberByStamp(const std::vector<uint32_t>& slot_ids, int64_t offset,
                     std::vector<int64_t>* ids, uint32_t* positions);
  void NumberByHash(const std::vector<uint32_t>& slot_ids, int64_t offset,
                    std::vector<int64_t>* ids, uint32_t* positions);

  struct Stamp {
    uint32_t round = 0;  // valid when equal to round_
    uint32_t number = 0;
  };
  struct Entry {
    int64_t id = 0;
    Stamp stamp;
  };
  int64_t rows_;
  bool by_stamp_;
  uint32_t round_ = 0;
  std::vector<Stamp> stamps_;   // one per row, from the first batch on
  std::vector<Entry> entries_;  // open addressing, a power of two
};

// Copies between a table's pulled rows and the columns of a matrix, for every slot of the table.
class TableColumns {
 public:
  // to += rows (indicator, wide) or to = rows (embedding, at each slot's column).
  void Forward(const TableUse& use, const FeatureBatch& batch, const RowSet& set, size_t dimension,
               float* to, size_t stride);
  // rows += gradient.
  void Backward(const TableUse& use, const FeatureBatch& batch, const RowSet& set, size_t dimension,
                const float* gradient, size_t stride, float* rows);

 private:
  // The factor of every id, or nullptr if all are 1.
  const float* Factors(const IdSlot& slot, Combiner combiner, size_t rows);
  std::vector<float> factors_;
};

// The deep part's hidden layers and output layer, with their activations for one batch.
class LayerStack {
 public:
  // `first_tensor`: the index of the first layer's kernel among the network's dense tensors.
  LayerStack(const NetworkShape& shape, size_t outputs, size_t first_tensor);

  // The first layer's input, rows x input_width; fill it before Forward.
  float* Input(size_t rows);
  // First half: the first layer before its activation; the caller adds indicator rows to it.
  float* FirstLayer(size_t rows, const ParameterView& view);
  size_t first_width() const { return layers_.front().width; }
  // Second half: adds the outputs to `logits`. Uses dropout if `train`.
  void Forward(size_t rows, const ParameterView& view, bool train, uint64_t seed, uint64_t step,
               float* logits);
  // Computes the layers' gradients from the logits' gradient; FirstGradient and InputGradient stay
  // valid until the next call.
  void Backward(size_t rows, const ParameterView& view, const float* logits_gradient,
                Gradient* gradient);
  const float* FirstGradient() const { return layers_.front().gradient.data(); }
  // For the embeddings' columns only: rows x embedding_width.
  const float* InputGradient() const { return input_gradient_.data(); }

 private:
  struct Layer {
    size_t inputs = 0;
    size_t width = 0;
    size_t kernel = 0;  // position among the dense tensors; inputs == 0: none
    size_t bias = 0;
    std::vector<float> before;       // gelu: its input
    std::vector<float> values;       // after the activation
    std::vector<float> dropped;      // values with dropout
    std::vector<float> keep;         // 0 or 1 / (1 - dropout)
    std::vector<float> gradient;     // of the value before the activation
    const float* outputs = nullptr;  // what the next layer reads
  };
  void Activate(Layer* layer, size_t n) const;
  void Differentiate(Layer* layer, size_t n) const;
  void Drop(Layer* layer, size_t n, uint64_t seed, uint64_t step, size_t index) const;
  void KernelGradient(const Layer& layer, const float* inputs, size_t input_stride, size_t rows,
                      const float* gradient_of_outputs, Gradient* gradient) const;
  // to (rows x columns) = gradient x the first `columns` rows of the kernel, transposed.
  void InputsGradient(const Layer& layer, size_t rows, const ParameterView& view,
                      const float* gradient_of_outputs, size_t columns, float* to);

  Activation activation_;
  float dropout_;
  size_t embedding_width_;
  std::vector<Layer> layers_;  // the hidden ones
  Layer output_;
  std::vector<float> input_;
  std::vector<float> input_gradient_;
  std::vector<float> transposed_;
};

}  // namespace sluice::models
