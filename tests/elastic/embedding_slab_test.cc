#include "elastic/embedding_slab.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "models/model.pb.h"

namespace sluice::elastic {
namespace {

// A row that is touched now and then takes the same steps as a tensor of its own.
TEST(EmbeddingSlab, P1_SparseRowsStepLikeDenseTensors) {
  constexpr uint32_t kDimension = 5;
  for (const char* name :
       {"SGD", "Adagrad", "Adam", "AMSGrad", "Adamax", "Nadam", "RMSprop", "Adadelta", "Ftrl"}) {
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
      int64_t steps = 0;
    };
    std::map<int64_t, Dense> expected;
    for (int64_t step = 0; step < 60; ++step) {
      const std::vector<int64_t> ids{step % 7, -step % 5 - 1, 1'000'000'007 * (step % 3 + 1)};
      std::vector<float> gradient;
      for (size_t i = 0; i < ids.size() * kDimension; ++i) {
        gradient.push_back(0.1F * static_cast<float>((step * 7 + static_cast<int64_t>(i)) % 11) -
                           0.4F);
      }
      slab.Update(ids, gradient.data(), 1);
      for (size_t i = 0; i < ids.size(); ++i) {
        Dense& dense = expected[ids[i]];
        if (dense.steps == 0) {
          initializer.Fill(ids[i], dense.values);
          dense.slots.resize(kDimension * optimizer->slot_count());
          optimizer->InitializeSlots(dense.slots, kDimension);
        }
        optimizer->Update(dense.values.data(), dense.slots.data(), gradient.data() + i * kDimension,
                          kDimension, ++dense.steps, 1);
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

}  // namespace
}  // namespace sluice::elastic
