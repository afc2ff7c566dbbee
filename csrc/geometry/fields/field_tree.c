/* The parts of a field's elements and the tree of their boxes: split at the middle of the longest
 * axis of their centres. */
#include "geometry/fields/field.h"

#include "base/vec3.h"

/* ---------------------------------------------------------------- parts */

static void box_empty(field_box *box) {
  vec3_set(box->low, INFINITY, INFINITY, INFINITY);
  vec3_set(box->high, -INFINITY, -INFINITY, -INFINITY);
}

static void box_hold(field_box *box, const double x[3]) {
  for (int k = 0; k < 3; ++k) {
    box->low[k] = fmin(box->low[k], x[k]);
    box->high[k] = fmax(box->high[k], x[k]);
  }
}

static double pressure_at(const field_cell *cell, int corner) {
  return vec3_dot(cell->gradient, cell->corner[corner]) + cell->offset;
}

int field_part_number(const qd_field *field, int element) {
  if (!field->cell) {
    return 1;
  }
  const field_cell *cell = field->cell + element;
  double edge[3][3], base[3];
  for (int i = 0; i < 3; ++i) {
    vec3_sub(edge[i], cell->corner[i + 1], cell->corner[0]);
  }
  vec3_cross(base, edge[0], edge[1]);
  const double volume = fabs(vec3_dot(base, edge[2])) / 6.0;
  const double length = (cell->most - cell->least) / vec3_norm(cell->gradient);
  const double width = sqrt(6.0 * volume / length); /* of the triangle across from the tip */
  const double parts = floor(length / width + 0.5);
  return parts >= FIELD_PARTS ? FIELD_PARTS : parts < 1.0 || !(parts > 0.0) ? 1 : (int)parts;
}

/* The box around what of a cell has a pressure between two. */
static void slab_box(const field_cell *cell, double least, double most, field_box *box) {
  double p[4];
  box_empty(box);
  box->least = least;
  box->most = most;
  for (int i = 0; i < 4; ++i) {
    p[i] = pressure_at(cell, i);
    if (p[i] >= least && p[i] <= most) {
      box_hold(box, cell->corner[i]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int side = 0; side < 2; ++side) {
        const double level = side ? most : least;
        if (p[i] < level && p[j] > level) {
          double x[3];
          vec3_sub(x, cell->corner[j], cell->corner[i]);
          vec3_scale(x, x, (level - p[i]) / (p[j] - p[i]));
          vec3_add(x, x, cell->corner[i]);
          box_hold(box, x);
        }
      }
    }
  }
}

static void cell_parts(qd_field *field, int element, int count) {
  const field_cell *cell = field->cell + element;
  const double step = (cell->most - cell->least) / count;
  for (int i = 0; i < count; ++i) {
    field_box *box = &field->part[field->part_count + i].box;
    slab_box(cell, cell->least + i * step, cell->least + (i + 1) * step, box);
    /* Rounding must not leave gaps between parts, nor corners out of the first and the last. */
    const double room = 1e-9 * step;
    box->least = i > 0 ? box->least - room : cell->least - room;
    box->most = i + 1 < count ? box->most + room : cell->most + room;
    if (count == 1) {
      vec3_copy(box->low, cell->low);
      vec3_copy(box->high, cell->high);
    }
  }
}

static void triangle_part(qd_field *field, int element) {
  field_box *box = &field->part[field->part_count].box;
  box_empty(box);
  box->least = 0.0;
  box->most = 0.0;
  for (int i = 0; i < 3; ++i) {
    box_hold(box, field->triangle[element].corner[i]);
  }
}

static void parts_fill(qd_field *field) {
  field->part_count = 0;
  for (int e = 0; e < field->element_count; ++e) {
    const int count = field_part_number(field, e);
    if (field->cell) {
      cell_parts(field, e, count);
    } else {
      triangle_part(field, e);
    }
    for (int i = 0; i < count; ++i) {
      field->part[field->part_count + i].element = e;
      field->part[field->part_count + i].first = field->part_count;
    }
    field->part_count += count;
  }
}

/* ---------------------------------------------------------------- tree */

static double middle(const qd_field *field, int part, int axis) {
  const field_box *box = &field->part[part].box;
  return box->low[axis] + box->high[axis];
}

static void box_join(field_box *box, const field_box *other) {
  box_hold(box, other->low);
  box_hold(box, other->high);
  box->least = fmin(box->least, other->least);
  box->most = fmax(box->most, other->most);
}

/* Puts the part of rank k of the count into its place, smaller ones before it (Hoare). */
static void select_rank(const qd_field *field, int *order, int count, int k, int axis) {
  int first = 0, last = count - 1;
  while (first < last) {
    const double pivot = middle(field, order[(first + last) / 2], axis);
    int i = first, j = last;
    while (i <= j) {
      while (middle(field, order[i], axis) < pivot) {
        ++i;
      }
      while (middle(field, order[j], axis) > pivot) {
        --j;
      }
      if (i <= j) {
        const int swapped = order[i];
        order[i++] = order[j];
        order[j--] = swapped;
      }
    }
    if (k <= j) {
      last = j;
    } else if (k >= i) {
      first = i;
    } else {
      return;
    }
  }
}

static int longest_axis(const field_box *box) {
  int axis = 0;
  for (int k = 1; k < 3; ++k) {
    axis = box->high[k] - box->low[k] > box->high[axis] - box->low[axis] ? k : axis;
  }
  return axis;
}

/* The nodes of some parts, from the next free one on. Depth: the logarithm of the count. */
static void build(qd_field *field, int *order, int count) {
  field_node *node = field->node + field->node_count++;
  node->box = field->part[order[0]].box;
  for (int i = 1; i < count; ++i) {
    box_join(&node->box, &field->part[order[i]].box);
  }
  node->second = -1;
  node->part = order[0];
  if (count == 1) {
    return;
  }
  const int half = count / 2;
  select_rank(field, order, count, half, longest_axis(&node->box));
  build(field, order, half);
  node->second = field->node_count;
  build(field, order + half, count - half);
}

void field_tree_build(qd_field *field, int *order) {
  parts_fill(field);
  field->node_count = 0;
  for (int i = 0; i < field->part_count; ++i) {
    order[i] = i;
  }
  build(field, order, field->part_count);
}
