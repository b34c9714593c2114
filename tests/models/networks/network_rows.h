#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/models/networks/network_specs.h"

namespace sluice::models {

// Ids for one slot: at most `most` per row, exactly one if it is 1.
inline IdSlot RandomSlot(size_t rows, uint32_t buckets, size_t most, bool weighted,
                         std::mt19937* random) {
  IdSlot slot;
  for (size_t r = 0; r < rows; ++r) {
    const size_t count = most == 1 ? 1 : (*random)() % (most + 1);
    for (size_t i = 0; i < count; ++i) {
      slot.ids.push_back(static_cast<uint32_t>((*random)() % buckets));
      if (weighted) {
        slot.weights.push_back(0.5f + static_cast<float>((*random)() % 100) / 100.0f);
      }
    }
    if (most != 1) {
      slot.ends.push_back(static_cast<uint32_t>(slot.ids.size()));
    }
  }
  return slot;
}

// Rows that fit the network's transform; labels by `label`.
inline FeatureBatch RandomBatch(const Network& network, size_t rows, uint32_t seed,
                                size_t ids_per_row, bool weighted_ids,
                                const std::function<float(std::mt19937&)>& label) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = network.transform().dense_width();
  batch.dense.resize(rows * batch.dense_width);
  for (float& value : batch.dense) {
    value = normal(random);
  }
  for (const SlotColumn& column : network.transform().slots()) {
    batch.slots.push_back(RandomSlot(rows, column.buckets, ids_per_row, weighted_ids, &random));
  }
  batch.labels.resize(rows * network.transform().label_width());
  for (float& value : batch.labels) {
    value = label(random);
  }
  return batch;
}

inline std::function<float(std::mt19937&)> ClassLabel(uint32_t classes) {
  return [classes](std::mt19937& random) { return static_cast<float>(random() % classes); };
}
inline float NumberLabel(std::mt19937& random) {
  return std::normal_distribution<float>()(random);
}

inline ModelSpec WithFeatures(ModelSpec spec, const std::string& combiner = "sum") {
  AddNumber(&spec, "a");
  AddCategory(&spec, "c", 5, 3)->set_combiner(combiner);
  AddNumber(&spec, "b");
  AddCategory(&spec, "d", 4, 0);
  AddCategory(&spec, "e", 6, 2)->set_combiner(combiner);
  return spec;
}
inline ModelSpec Classes(ModelSpec spec, int classes, const std::string& loss = "") {
  SetClasses(&spec, classes);
  spec.set_loss(loss);
  return spec;
}
inline ModelSpec Numbers(ModelSpec spec, const std::string& loss = "") {
  SetNumberLabel(&spec, 3, 2);
  spec.set_loss(loss);
  return spec;
}
inline ModelSpec WithActivation(const std::string& activation) {
  ModelSpec spec = WithFeatures(DeepSpec({6, 5}));
  SetText(&spec, "model.activation_fn", activation);
  return Classes(spec, 2);
}

}  // namespace sluice::models
