#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "models/imports/import_network.h"
#include "models/registry/python_type.h"
#include "models/registry/unknown_type.h"
#include "parser/quoting.h"
#include "planner/column_spec.h"
#include "planner/train_binder_internal.h"

// User-defined model types: CREATE MODEL TYPE.
namespace sluice::planner {
namespace {

// If model.loss is given, it determines whether a user type learns classes.
std::optional<bool> LossOfClasses(const parser::TrainStatement& statement) {
  for (const parser::Attribute& attribute : statement.attributes) {
    if (attribute.name.text != "model.loss") {
      continue;
    }
    const auto* word = std::get_if<parser::AttributeValue::Word>(&attribute.value.value);
    const auto* text = std::get_if<std::string>(&attribute.value.value);
    return models::IsLossOfClasses(word != nullptr ? word->text : text != nullptr ? *text : "");
  }
  return std::nullopt;
}

std::string NameOf(const UserTypeSource& brought) {
  const catalog::ModelVersion& type = brought.version;
  return type.schema.empty() ? type.name : type.schema + "." + type.name;
}

}  // namespace

bool TrainBinder::FindUserType() {
  if (types_ == nullptr) {
    return false;
  }
  const Result<parser::ModelName> name = parser::ToModelName(*statement_.model_type);
  if (!name.ok()) {
    return false;
  }
  Result<catalog::ModelVersion> version = types_->Find(name->schema, name->name, name->version);
  if (!version.ok()) {
    if (version.status().code() != Code::kNotFound) {
      errors_.Add(version.status().MovedTo(statement_.model_type->span));
      return true;
    }
    return false;
  }
  Result<std::string> source = types_->LoadWeights(*version);
  if (!source.ok()) {
    errors_.Add(source.status().MovedTo(statement_.model_type->span));
    return true;
  }
  bound_.user_type = UserTypeSource{std::move(version).value(), std::move(source).value()};
  return true;
}

void TrainBinder::UnknownType() {
  std::vector<std::string> names;
  const Result<std::vector<catalog::ModelVersion>> brought =
      types_ == nullptr ? std::vector<catalog::ModelVersion>() : types_->List();
  for (const catalog::ModelVersion& type :
       brought.ok() ? *brought : std::vector<catalog::ModelVersion>()) {
    names.push_back(type.schema.empty() ? type.name : type.schema + "." + type.name);
  }
  const models::MeantType meant = models::WhatTypeIsMeant(statement_.model_type->text, names);
  errors_.Add(NotFound(fmt::format("unknown model type '{}'", statement_.model_type->text))
                  .At(statement_.model_type->span)
                  .Hint(meant.hint));
  // The rest is held against the type that was probably meant.
  bound_.type = meant.name ? models::FindModelType(*meant.name) : nullptr;
}

void TrainBinder::MakeUserType() {
  // A model to continue from has its graph, whatever has become of its type.
  const bool continues = bound_.base && bound_.base->plan.model().has_graph();
  if (!bound_.user_type && !(continues && bound_.type == nullptr)) {
    return;
  }
  if (bound_.user_type && bound_.base &&
      bound_.base->plan.model().type() != NameOf(*bound_.user_type)) {
    errors_.Add(
        InvalidArgument(fmt::format("the model to continue from is a {}, not a {}",
                                    bound_.base->plan.model().type(), NameOf(*bound_.user_type)))
            .At(bound_.type_span)
            .Hint("leave USING out"));
    bound_.base.reset();
  }
  bool classes = false;
  if (bound_.base) {
    classes = bound_.base->plan.model().features().label().kind() == models::LabelPlan::CLASS;
  } else if (!has_statistics_ || !label_) {
    return;  // what is missing has been told
  } else {
    classes =
        LossOfClasses(statement_)
            .value_or(LooksLikeClasses(bound_.select.schema.columns[*label_],
                                       bound_.statistics.columns[*label_], bound_.statistics.rows));
  }
  const std::string name =
      bound_.base ? bound_.base->plan.model().type() : NameOf(*bound_.user_type);
  bound_.own_type = std::make_shared<const models::ModelType>(models::UserType(
      name, "", classes,
      bound_.user_type
          ? models::AttributesOfSource(bound_.user_type->version.type, bound_.user_type->text)
          : std::vector<models::AttributeSpec>()));
  bound_.type = bound_.own_type.get();
}

// The network has the inputs that it has: each number is one number, and NULL is the mean.
void TrainBinder::SimplifyForUserType() {
  if (!bound_.user_type) {
    return;
  }
  for (models::Feature& feature : *bound_.features.mutable_features()) {
    feature.set_null_indicator(false);
  }
  if (models::IsPython(bound_.user_type->version.type)) {
    ShowIds();
  }
}

// A class in Python gets the ids of a category, unless a COLUMN clause embeds it.
void TrainBinder::ShowIds() {
  std::vector<std::string> embedded;
  for (const parser::ColumnClause& clause : statement_.columns) {
    for (const parser::Expression& expression : clause.columns) {
      const Result<ColumnSpec> spec = ReadColumn(expression);
      if (!spec.ok() || spec->kind != ColumnSpec::Kind::kEmbedding) {
        continue;
      }
      if (spec->inner[0].kind == ColumnSpec::Kind::kCross || InnermostColumn(*spec).pattern) {
        return;
      }
      embedded.push_back(InnermostColumn(*spec).name);
    }
  }
  for (models::Feature& feature : *bound_.features.mutable_features()) {
    const auto reads = [&](const std::string& column) {
      const auto index = bound_.select.columns.Find(column);
      return index && bound_.select.schema.columns[*index].name ==
                          bound_.features.inputs(static_cast<int>(feature.inputs(0))).name();
    };
    const bool kept = feature.representation() == models::Feature::EMBEDDING &&
                      feature.inputs_size() == 1 &&
                      std::any_of(embedded.begin(), embedded.end(), reads);
    if (feature.kind() == models::Feature::CATEGORY && !kept) {
      feature.set_representation(models::Feature::INDICATOR);
      feature.clear_dimension();
      feature.clear_initializer();
    }
  }
}

}  // namespace sluice::planner
