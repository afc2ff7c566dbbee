/* Unit quaternions (w, x, y, z) and rotation vectors. Destination first. */
#ifndef QD_BASE_QUAT_H
#define QD_BASE_QUAT_H

/* q = a b */
void quat_mul(double q[4], const double a[4], const double b[4]);
/* q /= |q|; returns the old |q|; a zero quaternion is unchanged */
double quat_normalize(double q[4]);
/* R = rotation matrix of the unit quaternion q */
void quat_to_mat3(double R[9], const double q[4]);
/* q = exp(theta): rotation by |theta| about theta */
void quat_exp(double q[4], const double theta[3]);
/* theta = log(q): |theta| <= pi */
void quat_log(double theta[3], const double q[4]);
/* R = exp(theta) */
void rotation_exp(double R[9], const double theta[3]);
/* J = left Jacobian of exp: exp(theta + d) = exp(J d) exp(theta) + O(d^2) */
void rotation_left_jacobian(double J[9], const double theta[3]);
/* dJ = change of the left Jacobian for a change dtheta of theta */
void rotation_left_jacobian_change(double dJ[9], const double theta[3], const double dtheta[3]);
/* J = inverse of the left Jacobian: log(exp(d) exp(theta)) = theta + J d + O(d^2) */
void rotation_left_jacobian_inverse(double J[9], const double theta[3]);
/* D = derivative with respect to theta of J v, with J the inverse of the left Jacobian at theta */
void rotation_left_jacobian_inverse_slope(double D[9], const double theta[3], const double v[3]);

#endif
