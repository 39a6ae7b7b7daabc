// Exact inference for rows of codes with missing values under a product of tables.
//
// Given the observed values of a row, its missing cells separate into independent components: two cells are in the
// same component if a factor contains both. A component is determined by its missing cells and by the observed values
// around it, so rows that agree in these share the computation. Everything that depends on the numbers in the tables
// is recomputed at every call, the rest when the rows are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

struct TableFactor {
  std::vector<uint32_t> members;
  std::vector<int64_t> strides;  // of the members in its table
  int64_t offset = 0;  // of its table, or of that of row 0, among the cells of all tables
  int64_t n_cells = 1;
  bool by_row = false;  // has a separate table for every row
  int64_t sums_to_one = -1;  // the variable over which it sums to one
};

struct PartlyKnownInput {
  const int32_t* codes = nullptr;  // (n_rows, variables): −1 for missing, else below the size
  const double* weights = nullptr;
  size_t n_rows = 0;
  std::vector<uint32_t> sizes;
  std::vector<TableFactor> factors;
  std::vector<uint32_t> when;  // position of each variable in the elimination order
  std::vector<uint8_t> kept;  // variables that are not skipped if they and all their descendants are missing
};

// A table over some missing variables of a component, its place in their tree, and the factors multiplied into it.
struct SmallClique {
  size_t n_states = 1;
  size_t first = 0;          // of its states among those of the tree
  int64_t above = -1;  // parent clique; −1 for the root
  size_t n_message = 1;  // number of states of the separator
  size_t first_message = 0;
  std::vector<uint32_t> shape;
  std::vector<int64_t> to_message;  // strides of its own axes in the message
  std::vector<int64_t> above_message;  // strides of the parent's axes
};

struct FactorUse {
  size_t clique;
  std::vector<int64_t> strides;  // of the clique's axes in the factor's table
  bool by_row;
};

struct NodeUse {
  uint32_t variable;
  size_t clique;
  std::vector<int64_t> strides;
};

// Components with the same missing cells and the same factors.
struct Pattern {
  std::vector<SmallClique> cliques;  // each before its parent
  std::vector<FactorUse> factors;
  std::vector<NodeUse> nodes;
  size_t n_states = 0, n_messages = 0;  // of all cliques
  double cells = 0;  // the same, regardless of their number
  double cost = 0;  // of an instance, approximately, in cells
  std::vector<int64_t> bases;  // (instances, factors): offsets into the tables that the observed values select
  std::vector<double> weights;  // total weight of equal rows
  size_t n_instances = 0;
  std::vector<uint32_t> slots;  // of a hash table of instances
};

struct Occurrence {
  uint32_t row, pattern, instance;
};

class PartlyKnown {
 public:
  explicit PartlyKnown(PartlyKnownInput input);

  double most_cells() const { return most_cells_; }  // of the cliques of any component
  size_t n_rows() const { return n_rows_; }
  size_t n_cells() const { return n_cells_; }  // of all tables
  size_t n_instances() const { return n_instances_; }
  const std::vector<uint32_t>& sizes() const { return sizes_; }

  // Adds the expected counts of factors with a missing member to `counts`; returns their weighted log likelihood.
  double expect(const double* tables, const double* logs, double* counts, size_t threads) const;
  // Adds the log likelihood of every row under these factors to `log_likelihood`, and writes the posterior of every
  // missing variable that has an output array in `room` (one pointer each, (rows, levels)).
  void answer(const double* tables, const double* logs, double* log_likelihood, const std::vector<double*>& room,
              size_t threads) const;

 private:
  void read(const PartlyKnownInput& input);

  std::vector<uint32_t> sizes_;
  std::vector<Pattern> patterns_;
  std::vector<Occurrence> occurrences_;
  std::vector<size_t> firsts_;  // of the instances of every pattern among all
  size_t n_rows_ = 0, n_cells_ = 0, n_shared_ = 0, n_instances_ = 0;
  double most_cells_ = 0, cost_ = 0;
};

// The cliques of the variables of a component, those of `factors`, eliminated in the order of `when`.
Pattern plan_component(const std::vector<uint32_t>& variables, const std::vector<uint32_t>& factors,
                       const PartlyKnownInput& input);

}  // namespace tallybayes
