#include "planner/derive.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/letter_case.h"
#include "planner/derive_internal.h"
#include "planner/free_text.h"
#include "planner/number_spread.h"
#include "planner/number_style.h"

namespace sluice::planner {
namespace {

using Kind = ColumnSpec::Kind;

// An error repeats the pattern.
constexpr size_t kLongestPattern = 1000;

const ColumnSpec* CrossIn(const ColumnSpec& spec) {
  if (spec.kind == Kind::kCross) {
    return &spec;
  }
  const bool wraps = spec.kind == Kind::kEmbedding || spec.kind == Kind::kIndicator;
  return wraps && spec.inner[0].kind == Kind::kCross ? &spec.inner[0] : nullptr;
}

// Refuses functions that are of no use to trees, as SQLFlow does.
Status CheckTrees(const ColumnSpec& spec) {
  if (spec.kind == Kind::kEmbedding || spec.kind == Kind::kCross ||
      spec.kind == Kind::kSequenceCategoryId || spec.kind == Kind::kWeighted) {
    return InvalidArgument(
               fmt::format("{} is not supported in XGBoost models", ColumnFunctionName(spec.kind)))
        .At(spec.span)
        .Hint("they take columns, BUCKET, CATEGORY_ID, CATEGORY_HASH, VOCABULARY and INDICATOR");
  }
  for (const ColumnSpec& inner : spec.inner) {
    RETURN_IF_ERROR(CheckTrees(inner));
  }
  return OkStatus();
}

// Finds the columns that each request refers to.
class Resolver {
 public:
  explicit Resolver(const DeriveInput& input) : input_(input) {}

  // The columns that match a name or pattern; a pattern skips columns that cannot be features:
  // those with another role, and bytes.
  Result<std::vector<size_t>> Columns(const ColumnSpec& column) const;

 private:
  Result<std::vector<size_t>> Matches(const ColumnSpec& pattern) const;

  const DeriveInput& input_;
};

Result<std::vector<size_t>> Resolver::Matches(const ColumnSpec& pattern) const {
  const auto no_match = [&] {
    return ColumnNotFound(
               fmt::format("'{}' in COLUMN does not match any selected column", pattern.name))
        .At(pattern.span)
        .Hint("a quoted name is a regular expression for whole names, in any case");
  };
  if (pattern.name.size() > kLongestPattern) {
    return no_match();
  }
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_case_sensitive(false);
  const re2::RE2 expression(pattern.name, options);
  if (!expression.ok()) {
    return InvalidArgument(fmt::format("'{}' in COLUMN is not a regular expression: {}",
                                       pattern.name, expression.error()))
        .At(pattern.span)
        .Hint("a quoted name is one; write a plain name without quotes");
  }
  std::vector<size_t> found;
  for (size_t i = 0; i < input_.schema.columns.size(); ++i) {
    const ColumnInfo& column = input_.schema.columns[i];
    if (input_.excluded[i].empty() && column.type != DataType::kBytes &&
        re2::RE2::FullMatch(column.name, expression)) {
      found.push_back(i);
    }
  }
  if (found.empty()) {
    return no_match();
  }
  return found;
}

Result<std::vector<size_t>> Resolver::Columns(const ColumnSpec& column) const {
  const std::optional<size_t> index = input_.index.Find(column.name);
  if (!index) {
    return column.pattern
               ? Matches(column)
               : Result<std::vector<size_t>>(input_.index.Missing(column.name, column.span));
  }
  const std::string& instead = input_.excluded[*index];
  if (!instead.empty()) {
    return InvalidArgument(fmt::format("column '{}' is {}; it cannot be a feature too",
                                       input_.schema.columns[*index].name, instead))
        .At(column.span);
  }
  return std::vector<size_t>{*index};
}

models::Feature::Part PartOf(const FeaturePart& part) {
  switch (part.of) {
    case FeaturePart::kWide:
      return models::Feature::WIDE;
    case FeaturePart::kDeep:
      return models::Feature::DEEP;
    case FeaturePart::kBoth:
      break;
  }
  return models::Feature::BOTH;
}

// The requests by column; crosses separately.
struct Requests {
  std::vector<std::vector<const RequestedColumn*>> by_column;
  struct Cross {
    const RequestedColumn* request;
    const ColumnSpec* cross;
    std::vector<size_t> columns;
  };
  std::vector<Cross> crosses;
  std::vector<const RequestedColumn*> stars;
};

Status ResolveCross(const RequestedColumn& request, const ColumnSpec& cross,
                    const Resolver& resolver, Requests* requests) {
  Requests::Cross resolved{&request, &cross, {}};
  for (const ColumnSpec& member : cross.inner) {
    const ColumnSpec& column = InnermostColumn(member);
    ASSIGN_OR_RETURN(const std::vector<size_t> columns, resolver.Columns(column));
    if (columns.size() != 1) {
      return InvalidArgument(
                 fmt::format("'{}' in CROSS matches {} columns", column.name, columns.size()))
          .At(column.span)
          .Hint("name each column");
    }
    resolved.columns.push_back(columns[0]);
  }
  requests->crosses.push_back(std::move(resolved));
  return OkStatus();
}

Status Resolve(const DeriveInput& input, Requests* requests) {
  const Resolver resolver(input);
  requests->by_column.resize(input.schema.columns.size());
  ErrorList errors;
  for (const RequestedColumn& request : input.requested) {
    if (errors.full()) {
      break;
    }
    if (input.family == models::ModelFamily::kTrees) {
      const Status supported = CheckTrees(request.spec);
      if (!supported.ok()) {
        errors.Add(supported);
        continue;
      }
    }
    if (request.spec.kind == Kind::kStar) {
      requests->stars.push_back(&request);
      continue;
    }
    if (const ColumnSpec* cross = CrossIn(request.spec)) {
      errors.Add(ResolveCross(request, *cross, resolver, requests));
      continue;
    }
    const Result<std::vector<size_t>> columns = resolver.Columns(InnermostColumn(request.spec));
    if (!columns.ok()) {
      errors.Add(columns.status());
      continue;
    }
    for (const size_t column : *columns) {
      requests->by_column[column].push_back(&request);
    }
  }
  return errors.Take();
}

}  // namespace

void FeatureMaker::Understand(const std::vector<std::string>& cells, const Fits& fits,
                              ColumnFacts* facts) const {
  facts->shape = InspectText(cells);
  facts->thousands = ThousandsOf(cells);
  if (!facts->thousands.empty()) {
    facts->shape.format = {};
    facts->shape.format.kind = models::ColumnFormatKind::kNumber;
    SetMoments(SampleNumbers(*facts), &facts->shape);
  }
  facts->time = FindTimes(facts->info, facts->index, facts->shape, input_.statistics, fits);
  if (!facts->time) {
    const std::set<std::string> units =
        UnitsOf(facts->index, facts->shape, input_.statistics, fits);
    facts->unit = units.size() == 1 ? *units.begin() : "";
    facts->several_units = units.size() > 1;
  }
}

ColumnFacts FeatureMaker::FactsOf(size_t column) const {
  ColumnFacts facts{column, input_.schema.columns[column], input_.statistics.columns[column]};
  if (!facts.is_text()) {
    facts.time = FindTimes(facts.info, column, facts.shape, input_.statistics);
    return facts;
  }
  const std::vector<std::string> cells = TextsOf(input_.statistics.sample, column);
  facts.has_blank = std::any_of(cells.begin(), cells.end(), [](const std::string& cell) {
    return models::TrimBlanks(cell).empty() || models::IsMissingWord(cell);
  });
  Understand(cells, nullptr, &facts);
  if (facts.is_understood()) {
    return facts;
  }
  for (const Fits& fits : KindsOf(cells)) {
    std::optional<OddCells> odd = FindOdd(cells, fits, facts.statistics.common_values);
    if (!odd) {
      continue;
    }
    std::vector<std::string> fitting = cells;
    std::erase_if(fitting, [&odd](const std::string& cell) {
      return std::any_of(odd->texts.begin(), odd->texts.end(),
                         [&cell](const auto& one) { return one.first == cell; });
    });
    ColumnFacts tried{column, facts.info, facts.statistics};
    tried.has_blank = facts.has_blank;
    tried.odd = std::move(*odd);
    Understand(fitting, fits, &tried);
    if (tried.is_understood()) {
      return tried;
    }
  }
  return facts;
}

models::Feature* FeatureMaker::Add(const std::string& name, const std::vector<size_t>& columns,
                                   const FeaturePart& part) {
  inputs_.resize(input_.schema.columns.size());
  models::Feature* feature = plan_.add_features();
  std::string own = name;
  for (int& next = next_number_[LowerAscii(name)]; !names_.insert(LowerAscii(own)).second; ++next) {
    own = fmt::format("{}_{}", name, next + 2);
  }
  feature->set_name(own);
  feature->set_part(PartOf(part));
  feature->set_tower(part.tower);
  for (const size_t column : columns) {
    if (!inputs_[column]) {
      inputs_[column] = static_cast<uint32_t>(plan_.inputs_size());
      models::InputColumn* input = plan_.add_inputs();
      input->set_name(input_.schema.columns[column].name);
      input->set_type(static_cast<int32_t>(input_.schema.columns[column].type));
      input->set_null_share(input_.statistics.columns[column].null_fraction);
      DescribeSpread(input_.statistics, column, input);
    }
    feature->add_inputs(*inputs_[column]);
  }
  return feature;
}

Status DeriveFeatures(const DeriveInput& input, models::FeaturePlan* plan, DeriveReport* report) {
  const size_t columns = input.schema.columns.size();
  SLUICE_CHECK(input.statistics.columns.size() == columns && input.excluded.size() == columns &&
                   input.left_out.size() == columns && input.keys.size() == columns,
               "statistics of other columns than the schema's");
  Requests requests;
  ErrorList errors;
  errors.Add(Resolve(input, &requests));
  FeatureMaker maker(input, plan, report);
  const bool all = !input.only_requested || !requests.stars.empty();
  std::vector<ColumnFacts> facts;
  std::vector<WhyLeftOut> left_out(columns);
  bool any = !requests.crosses.empty();
  for (size_t i = 0; i < columns; ++i) {
    const bool asked = !requests.by_column[i].empty();
    facts.push_back(maker.FactsOf(i));
    if (input.excluded[i].empty() && !asked && all) {
      left_out[i] = input.left_out[i].empty() ? ReasonToLeaveOut(facts[i], input)
                                              : WhyLeftOut{input.left_out[i], false};
    }
    any = any || (input.excluded[i].empty() && left_out[i].reason.empty() && (asked || all));
  }
  for (size_t i = 0; i < columns; ++i) {
    if (!any && left_out[i].spare) {
      report->notes.push_back(fmt::format("{} is {}: it is a feature because nothing else is there",
                                          facts[i].name(), left_out[i].reason));
      left_out[i].reason.clear();
    }
    if (!input.excluded[i].empty()) {
      continue;
    }
    if (report->series.empty() && facts[i].time &&
        IsSeries(i, facts[i].info.type, facts[i].time->format, input.statistics)) {
      report->series = {.columns = {facts[i].name()}, .order = facts[i].name()};
    }
    if (facts[i].time) {
      report->times[facts[i].name()] = std::string(models::TimeFormatName(facts[i].time->format));
    }
    if (!left_out[i].reason.empty()) {
      report->left_out.push_back({facts[i].name(), left_out[i].reason});
      continue;
    }
    std::vector<const RequestedColumn*> wanted = requests.by_column[i];
    if (wanted.empty() && input.only_requested) {
      wanted = requests.stars;
      if (wanted.empty()) {
        continue;
      }
    }
    if (wanted.empty()) {
      errors.Add(maker.AddDerived(facts[i], FeaturePart::kBoth, Span()));
    }
    for (const RequestedColumn* request : wanted) {
      errors.Add(maker.AddRequested(request->spec, facts[i], request->part));
    }
  }
  if (report->series.empty()) {
    std::vector<bool> usable;
    std::transform(input.excluded.begin(), input.excluded.end(), std::back_inserter(usable),
                   [](const std::string& reason) { return reason.empty(); });
    report->series = FindCalendar(input.schema, usable, input.statistics);
  }
  for (const Requests::Cross& cross : requests.crosses) {
    const ColumnSpec* embedding =
        cross.cross == &cross.request->spec ? nullptr : &cross.request->spec;
    errors.Add(maker.AddCross(*cross.cross, embedding, cross.columns, cross.request->part));
  }
  // A type with towers without a COLUMN that could be read: that has been said.
  const bool none_named = input.only_requested && input.requested.empty();
  if (errors.empty() && plan->features_size() == 0 && !none_named) {
    std::vector<std::string> reasons;
    for (const LeftOutColumn& column : report->left_out) {
      reasons.push_back(fmt::format("{} ({})", column.name, column.reason));
    }
    Status status = InvalidArgument("the SELECT leaves no column that could be a feature");
    if (!reasons.empty()) {
      status = std::move(status).Detail(fmt::format("left out: {}", fmt::join(reasons, ", ")));
    }
    return std::move(status).Hint("select more than the label");
  }
  return errors.Take();
}

}  // namespace sluice::planner
