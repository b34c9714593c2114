#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/imports/import_network.h"
#include "models/model.pb.h"
#include "tests/fuzz/target.h"

// A file that a user brings as a model type.
namespace sluice::models {
namespace {

ModelSpec Spec() {
  ModelSpec spec;
  for (const char* name : {"a", "b"}) {
    InputColumn* column = spec.mutable_features()->add_inputs();
    column->set_name(name);
    Feature* feature = spec.mutable_features()->add_features();
    feature->set_name(name);
    feature->add_inputs(static_cast<uint32_t>(spec.features().inputs_size() - 1));
    feature->set_scale(1);
  }
  for (const char* name : {"c", "ids"}) {
    InputColumn* column = spec.mutable_features()->add_inputs();
    column->set_name(name);
    Feature* feature = spec.mutable_features()->add_features();
    feature->set_name(name);
    feature->add_inputs(static_cast<uint32_t>(spec.features().inputs_size() - 1));
    feature->set_kind(Feature::CATEGORY);
    feature->set_representation(Feature::EMBEDDING);
    feature->set_dimension(3);
    feature->set_combiner("mean");
    feature->mutable_categorizer()->set_kind(Categorizer::IDENTITY);
    feature->mutable_categorizer()->set_buckets(5);
  }
  spec.mutable_features()->mutable_label()->set_kind(LabelPlan::CLASS);
  spec.mutable_features()->mutable_label()->add_classes("no");
  spec.mutable_features()->mutable_label()->add_classes("yes");
  return spec;
}

}  // namespace
}  // namespace sluice::models

FUZZ_TARGET(imports) {
  static const sluice::models::ModelSpec kSpec = sluice::models::Spec();
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (const std::string& language : sluice::models::ImportLanguages()) {
    sluice::models::ModelSpec spec = kSpec;
    sluice::models::ImportReport report;
    static_cast<void>(sluice::models::ImportNetwork({language, file, {}}, &spec, &report));
  }
  return 0;
}
