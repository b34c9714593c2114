#include "elastic/parameters/embedding_slab.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "models/model.pb.h"

namespace sluice::elastic {
namespace {

// A row that is touched now and then takes the same steps as a separate tensor would at those steps
// of the whole model.
TEST(EmbeddingSlab, P1_SparseRowsStepLikeDenseTensors) {
  constexpr uint32_t kDimension = 5;
  for (const char* name : {"SGD", "Adagrad", "Adam", "AdamW", "AMSGrad", "Adamax", "Nadam",
                           "RMSprop", "Adadelta", "Ftrl"}) {
    models::OptimizerSpec spec;
    spec.set_name(name);
    models::Attribute* rate = spec.add_arguments();
    rate->set_name("learning_rate");
    rate->set_number(0.05);
    const auto optimizer = models::Optimizer::Make(spec).value();
    const models::EmbeddingTable table{"t", 0, kDimension, false, "normal"};
    EmbeddingSlab slab(table, *optimizer, 3);
    const models::RowInitializer initializer(table, 3);
    struct Dense {
      std::vector<float> values = std::vector<float>(kDimension);
      std::vector<float> slots;
    };
    std::map<int64_t, Dense> expected;
    for (int64_t step = 0; step < 60; ++step) {
      const std::vector<int64_t> ids{step % 7, -step % 5 - 1, 1'000'000'007 * (step % 3 + 1)};
      std::vector<float> gradient;
      for (size_t i = 0; i < ids.size() * kDimension; ++i) {
        gradient.push_back(0.1F * static_cast<float>((step * 7 + static_cast<int64_t>(i)) % 11) -
                           0.4F);
      }
      slab.Update(ids, gradient.data(), step + 1, 1);
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto [place, is_new] = expected.try_emplace(ids[i]);
        Dense& dense = place->second;
        if (is_new) {
          initializer.Fill(ids[i], dense.values);
          dense.slots.resize(kDimension * optimizer->slot_count());
          optimizer->InitializeSlots(dense.slots, kDimension);
        }
        optimizer->Update(dense.values.data(), dense.slots.data(), gradient.data() + i * kDimension,
                          kDimension, step + 1, 1);
      }
    }
    EXPECT_EQ(slab.rows(), expected.size());
    for (const auto& [id, dense] : expected) {
      std::vector<float> row(kDimension);
      slab.Read(std::span(&id, 1), row.data());
      EXPECT_EQ(row, dense.values) << name << ", row " << id;
    }
  }
}

// Through several sizes of the index and of the blocks; hashed ids, consecutive ones, and negative
// ones.
TEST(EmbeddingSlab, RowsAreFoundAgainHoweverManyThereAre) {
  constexpr uint32_t kDimension = 3;
  constexpr int64_t kBatch = 1'000, kBatches = 200;
  models::OptimizerSpec spec;
  spec.set_name("SGD");
  const auto optimizer = models::Optimizer::Make(spec).value();
  const models::EmbeddingTable table{"t", 0, kDimension, false, "normal"};
  EmbeddingSlab slab(table, *optimizer, 3);
  const models::RowInitializer initializer(table, 3);
  const auto id_of = [](int64_t i) {
    return i % 3 == 0 ? i : i % 3 == 1 ? -i : i * 1'000'003'000'007;
  };
  std::vector<int64_t> ids(kBatch);
  const std::vector<float> nothing(kBatch * kDimension, 0.0F), one(kBatch * kDimension, 1.0F);
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    for (int64_t i = 0; i < kBatch; ++i) {
      ids[static_cast<size_t>(i)] = id_of(batch * kBatch + i);
    }
    slab.Update(ids, batch % 2 == 0 ? nothing.data() : one.data(), batch + 1, 1);
  }
  ASSERT_EQ(slab.rows(), kBatches * kBatch);
  std::vector<float> values(kBatch * kDimension), initial(kDimension);
  for (int64_t batch = 0; batch <= kBatches; ++batch) {  // the last one was never updated
    for (int64_t i = 0; i < kBatch; ++i) {
      ids[static_cast<size_t>(i)] = id_of(batch * kBatch + i);
    }
    slab.Read(ids, values.data());
    const float step = batch % 2 == 0 ? 0.0F : 0.01F;  // SGD's rate
    for (size_t i = 0; i < ids.size(); ++i) {
      initializer.Fill(ids[i], initial);
      for (size_t k = 0; k < kDimension; ++k) {
        ASSERT_EQ(values[i * kDimension + k], initial[k] - step) << "row " << ids[i];
      }
    }
  }
  EXPECT_EQ(slab.rows(), kBatches * kBatch) << "reading creates nothing";
}

}  // namespace
}  // namespace sluice::elastic
